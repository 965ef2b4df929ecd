//! How many connections there may be, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::settings::Server;

/// How many connections each address has.
type Clients = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// The places of a listener.
pub(super) struct Places {
    all: Arc<Semaphore>,
    per_client_max: Option<usize>,
    clients: Clients,
}

/// A connection's place; given back when it is dropped.
pub(super) struct Place {
    _one_of_all: OwnedSemaphorePermit,
    client: Option<(Clients, IpAddr)>,
}

impl Places {
    pub(super) fn new(server: &Server) -> Self {
        let all = Arc::new(Semaphore::new(server.connections_max));
        Self { all, per_client_max: server.connections_per_client_max, clients: Arc::default() }
    }

    /// Waits for a place among all; nothing if there will be none.
    pub(super) async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().acquire_owned().await.ok()
    }

    /// A place for this client; nothing if it has as many as it may.
    pub(super) fn take(&self, permit: OwnedSemaphorePermit, client: IpAddr) -> Option<Place> {
        let Some(max) = self.per_client_max else { return Some(Place { _one_of_all: permit, client: None }) };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let open = clients.entry(client).or_default();
        if *open >= max {
            return None;
        }
        *open += 1;
        Some(Place { _one_of_all: permit, client: Some((self.clients.clone(), client)) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((clients, client)) = &self.client else { return };
        let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = clients.get_mut(client) {
            *open -= 1;
            if *open == 0 {
                clients.remove(client);
            }
        }
    }
}
