//! Where a connection comes from, told to each of its requests.

use std::net::IpAddr;

use hyper::Request;
use hyper::service::Service;

/// The other end of the connection that a request came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer(pub(super) IpAddr);

/// Serves as another service does, and tells it the peer where somebody asks for that: most never do.
#[derive(Debug, Clone)]
pub(super) struct OfPeer<S> {
    service: S,
    peer: Option<Peer>,
}

impl<S> OfPeer<S> {
    pub(super) fn new(service: S, peer: Option<Peer>) -> Self {
        Self { service, peer }
    }
}

impl<B, S: Service<Request<B>>> Service<Request<B>> for OfPeer<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<B>) -> Self::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        self.service.call(request)
    }
}
