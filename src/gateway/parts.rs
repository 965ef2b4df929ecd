//! The rules as the workspace has them, read part by part.

use std::sync::Arc;

use super::rules::part::{keyring_after, roster_after};
use super::rules::{Part, Rules};
use crate::callers::{Name, Roster, Token, TokenFault, TokenFiles};
use crate::engine::{InForce, TokenFacts, TokenHands};
use crate::os::clock;
use crate::policy::{PolicySet, Workspace};
use crate::proof::Keyring;

/// What of the rules could not be read.
pub(super) struct Unread {
    pub(super) broken: Vec<(Part, String)>,
    /// Why the ledger's database did not tell the tokens that gateways share.
    pub(super) unanswered: Option<String>,
}

/// The rules as the workspace has them, each part for itself.
pub(super) struct Parts {
    policies: Result<PolicySet, String>,
    keyring: Result<Keyring, String>,
    roster: Result<Roster, TokenFault>,
}

impl Parts {
    pub(super) fn read(workspace: &Workspace, tokens: &TokenFiles) -> Self {
        Self {
            policies: workspace.load_policies().map_err(|fault| fault.to_string()),
            keyring: workspace.load_keyring().map_err(|fault| fault.to_string()),
            roster: tokens.load(),
        }
    }

    /// The same, where these were in force before.
    pub(super) fn read_again(before: &Rules, workspace: &Workspace, tokens: &TokenFiles) -> Self {
        let keyring = keyring_after(&before.in_force.keyring, workspace);
        Self {
            policies: workspace.load_policies().map_err(|fault| fault.to_string()),
            keyring: keyring.map_err(|fault| fault.to_string()),
            roster: roster_after(&before.roster, tokens),
        }
    }

    /// The rules, where there are none before them.
    pub(super) fn all(self) -> Result<Rules, String> {
        Ok(rules_of(
            Arc::new(self.policies?),
            Arc::new(self.keyring?),
            Arc::new(self.roster.map_err(|fault| fault.to_string())?),
        ))
    }

    /// The rules, with what was there before in the place of each part that cannot be read; and which those are.
    pub(super) fn over(self, before: &Rules) -> (Rules, Unread) {
        let (mut broken, mut unanswered) = (Vec::new(), None);
        let policies = kept(self.policies, &before.in_force.policies, Part::Policies, &mut broken);
        let keyring = kept(self.keyring, &before.in_force.keyring, Part::Keys, &mut broken);
        let roster = match self.roster {
            Err(fault @ TokenFault::Shared(_)) => {
                unanswered = Some(fault.to_string());
                before.roster.clone()
            }
            read => {
                let read = read.map_err(|fault| fault.to_string());
                kept(read, &before.roster, Part::Tokens, &mut broken)
            }
        };
        (rules_of(policies, keyring, roster), Unread { broken, unanswered })
    }
}

fn kept<T>(read: Result<T, String>, before: &Arc<T>, part: Part, broken: &mut Vec<(Part, String)>) -> Arc<T> {
    match read {
        Ok(read) => Arc::new(read),
        Err(why) => {
            broken.push((part, why));
            before.clone()
        }
    }
}

pub(super) fn rules_of(policies: Arc<PolicySet>, keyring: Arc<Keyring>, roster: Arc<Roster>) -> Rules {
    let (valid, revoked): (Vec<&Token>, Vec<&Token>) =
        roster.tokens().iter().partition(|token| token.revoked_at().is_none());
    let tokens = valid.into_iter().map(facts).collect();
    let mut in_force = InForce::of_files(policies, keyring, tokens);
    in_force.revoked = revoked.into_iter().map(|token| token.fingerprint().to_string()).collect();
    in_force.hands = hands(&roster);
    Rules { in_force: Arc::new(in_force), roster, loaded_at: clock::now() }
}

/// Who made and revoked tokens, where a person did.
fn hands(roster: &Roster) -> TokenHands {
    let told = |by: fn(&Token) -> Option<&Name>| {
        let tokens = roster.tokens().iter();
        tokens.filter_map(|token| Some((token.fingerprint().to_string(), by(token)?.to_string()))).collect()
    };
    TokenHands { made: told(Token::made_by), revoked: told(Token::revoked_by) }
}

/// What the ledger says of a token.
fn facts(token: &Token) -> TokenFacts {
    TokenFacts {
        agent_id: token.caller().agent_id().map(str::to_owned),
        name: token.name().to_string(),
        principal: token.caller().standing().principal().map(str::to_owned),
        role: token.role().as_str().to_owned(),
        token_id: token.fingerprint().to_string(),
    }
}
