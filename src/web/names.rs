//! Looking names up.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use futures_util::future::BoxFuture;

/// What leads from a name to addresses.
pub trait Names: fmt::Debug + Send + Sync {
    /// The addresses of a host; an address in any spelling is one too.
    fn look_up<'n>(&'n self, host: &'n str, port: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>>;
}

/// As the machine looks names up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up<'n>(&'n self, host: &'n str, port: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}
