//! A person, as the ledger knows one.

use crate::wire::Sender;

/// A human operator: the name of the token, and the principal that the person also is, if the token says so.
///
/// Only a sender that is human makes one, so that an agent, a harness or an administrator cannot be taken for a
/// person further on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    name: String,
    principal: Option<String>,
}

impl Person {
    /// The person that an event comes from; nothing if it comes from anybody else.
    pub fn of(sender: Sender<'_>, principal: Option<&str>) -> Option<Self> {
        match sender {
            Sender::Human(name) => {
                Some(Self { name: name.to_owned(), principal: principal.map(str::to_owned) })
            }
            Sender::System | Sender::Agent(_) | Sender::Runner(_) => None,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Is this id, of an agent or a principal, the person's own? Ids compare byte for byte. A person whose token has
    /// an agent's name is taken for that agent: better one operator too few than an agent too many.
    pub fn goes_by(&self, id: &str) -> bool {
        self.name == id || self.principal.as_deref() == Some(id)
    }

    /// The same person? Two tokens that are tied to one principal are one person's.
    pub fn is(&self, other: &Self) -> bool {
        self.goes_by(&other.name) || other.principal.as_deref().is_some_and(|id| self.goes_by(id))
    }
}
