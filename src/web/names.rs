//! Looking names up.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::limits;

/// What leads from a name to addresses.
pub trait Names: fmt::Debug + Send + Sync {
    /// The addresses of a host; an address in any spelling is one too.
    fn look_up<'n>(&'n self, host: &'n str, port: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>>;
}

/// As the machine looks names up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

/// A look-up holds a thread until it is over, also when nobody waits for it any more. Whoever gives us names that are
/// slow must not take all threads that others are answered by.
static PLACES: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(limits::WEB_LOOK_UPS_MAX)));

impl Names for SystemNames {
    fn look_up<'n>(&'n self, host: &'n str, port: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            if let Ok(address) = host.parse::<IpAddr>() {
                return Ok(vec![SocketAddr::new(address, port)]);
            }
            let place = PLACES.clone().acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let look_up = move || {
                let _place = place;
                (host.as_str(), port).to_socket_addrs().map(Iterator::collect)
            };
            tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
        })
    }
}
