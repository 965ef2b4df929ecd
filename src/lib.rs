//! handoffd: the policy gateway that an orchestrator asks before one AI agent hands work to another.
//!
//! The rooms, in the order data walks through them. `ARCHITECTURE.md` has the plan.

pub mod a2a;
pub mod ai;
pub mod answer;
pub mod authorization;
pub mod callers;
pub mod cases;
pub mod cli;
mod console;
pub mod contract;
pub mod dispatch;
pub mod engine;
pub mod evidence;
pub mod freeze;
pub mod gates;
pub mod gateway;
pub mod http;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod mentions;
pub mod os;
pub mod policy;
pub mod promotion;
pub mod proof;
pub mod proposal;
pub mod push;
pub mod sealing;
pub mod settings;
pub mod state;
pub mod timestamp;
pub mod views;
pub mod web;
pub mod wire;
