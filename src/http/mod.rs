//! HTTP: what an orchestrator talks to.
//!
//! A door: it finds out who calls and what for, asks the engine or the views, and answers. `endpoints.rs` is the
//! table of all there is; `door.rs` stands before every handler; `listener.rs` has the sockets. Decisions are the
//! engine's, and so are their words: nothing here allows anything.

mod a2a;
mod act_schemas;
mod acts;
mod alone;
mod approvals;
mod audit;
mod batch;
mod bodies;
mod call;
mod certificate;
mod console_links;
mod credential;
mod door;
mod endpoint;
mod endpoints;
mod events;
mod evidence;
mod exposition;
mod freezes;
mod grants;
mod handoffs;
mod head;
mod health;
mod inside;
mod limiter;
mod listener;
mod lookout;
mod mentions;
mod metrics;
mod openapi;
mod outgoing;
mod pacing;
mod peer;
mod places;
mod policies;
mod problem;
mod query;
mod reads;
mod route_view;
mod routes;
mod schemas;
mod socket;
mod spans;
mod streams;
mod tls;
mod token_ask;
mod tokens;
mod trace;
mod vouching;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::ai::Models;
use crate::callers::Sessions;
use crate::gateway::{Gateway, NonceKeeper, Probe, RuleKeeper, Sink};
use crate::push::Courier;
use crate::settings::Settings;
use alone::Alone;
use bodies::Bodies;
use health::ConditionLog;
use limiter::{Following, Limiter};
use lookout::Lookout;
use reads::Readers;
use spans::Exporter;

pub(crate) use approvals::hindrance_to_yes;
pub(crate) use audit::Verifying;
pub(crate) use certificate::Certificate;
pub(crate) use head::examine as examine_head;
pub(crate) use health::{for_the_log, look as look_at_condition};
pub(crate) use inside::{Ask, fault_of};
pub use listener::{ListenFault, Listening, listen};
pub use metrics::Metrics;
pub use openapi::document as openapi_document;
pub use problem::problems_markdown;
pub(crate) use problem::{Kind, Problem, say_when_to_come_back};
pub(crate) use query::decode as percent_decoded;
pub(crate) use tls::{
    Certificates, NoPair, Renewed, TlsFault, load as load_tls, no_pair, validity as tls_validity,
};
pub(crate) use tokens::{describe as describe_token, describe_key};

/// What every request shares.
#[derive(Debug)]
pub struct App {
    pub(crate) gateway: Gateway,
    pub(crate) rules: RuleKeeper,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    /// Who is decided on a thread of the runtime.
    pub(crate) alone: Alone,
    limiter: Limiter,
    following: Following,
    bodies: Bodies,
    readers: Readers,
    lookout: Lookout,
    nonces: NonceKeeper,
    /// Of people who look at the console.
    pub(crate) sessions: Sessions,
    probe: Probe,
    sink: Option<Sink>,
    spans: Option<Arc<Exporter>>,
    /// What is wrong, as it was last seen.
    pub(crate) condition: ConditionLog,
    /// True when it is time for streams to end.
    pub(crate) stopping: watch::Sender<bool>,
    /// One verification at a time.
    verifying: Arc<Semaphore>,
    /// Where it listens, and with which certificates, if with any.
    address: SocketAddr,
    pub(crate) certificates: Option<Arc<Certificates>>,
    /// Tells webhooks.
    courier: Arc<Courier>,
    /// The model gateway, if there is one.
    models: Option<Models>,
}

impl App {
    pub fn new(
        gateway: Gateway,
        rules: RuleKeeper,
        settings: Settings,
        metrics: Arc<Metrics>,
        listening: &Listening,
    ) -> io::Result<Arc<Self>> {
        let limiter = Limiter::new(&settings.server);
        let probe = Probe::start(&gateway)?;
        let sink = Sink::start(&gateway, &settings.sink)?;
        let spans = Exporter::start(&settings.otlp)?.map(Arc::new);
        let courier = Arc::new(a2a::courier(&gateway, &settings.a2a)?);
        let nonces = NonceKeeper::start(&gateway)?;
        let models = Models::open(&settings.ai, gateway.files().workspace()).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            gateway,
            rules,
            settings,
            metrics,
            alone: Alone::default(),
            limiter,
            following: Following::default(),
            bodies: Bodies::default(),
            readers: Readers::default(),
            lookout: Lookout::default(),
            nonces,
            sessions: Sessions::default(),
            probe,
            sink,
            spans,
            condition: ConditionLog::default(),
            stopping: watch::Sender::new(false),
            verifying: Arc::new(Semaphore::new(1)),
            address: listening.address(),
            certificates: listening.certificates(),
            courier,
            models,
        }))
    }

    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub fn rules(&self) -> &RuleKeeper {
        &self.rules
    }

    /// Ends what works beside the door, once the gateway has finished.
    pub fn finish(&self) {
        self.nonces.finish();
        if let Some(sink) = &self.sink {
            sink.stop();
        }
        if let Some(spans) = &self.spans {
            spans.stop();
        }
    }

    /// The lines for log shippers, if there are to be any.
    pub fn sink(&self) -> Option<&Sink> {
        self.sink.as_ref()
    }
}
