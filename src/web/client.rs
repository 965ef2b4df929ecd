//! One request, from the name to the answer.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::WebAddress;
use super::names::{Names, SystemNames};
use crate::limits;
use crate::os::files;

/// What makes requests.
#[derive(Clone)]
pub struct Client {
    tls: TlsConnector,
    names: Arc<dyn Names>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.names)
    }
}

/// Why there is no client: the file of authorities is not one.
#[derive(Debug)]
pub struct ClientFault {
    path: PathBuf,
    why: String,
}

impl fmt::Display for ClientFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for ClientFault {}

/// What is sent.
#[derive(Debug)]
pub struct Post<'p> {
    pub address: &'p WebAddress,
    /// Beside `Host` and `Content-Length`. Values may be secret, and are marked so by whoever has them.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// For all of it: looking up, connecting, sending, and reading the answer.
    pub timeout: Duration,
    /// What of the answer is read; nothing where only the status counts.
    pub answer_bytes_max: Option<usize>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
}

/// Why nothing came back. None of them quotes a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebFault {
    /// The name leads nowhere.
    NoSuchName,
    /// The name leads to where nobody may dial.
    Forbidden,
    Unreachable(String),
    Tls(String),
    Broken(String),
    TooLarge,
    TimedOut,
}

impl fmt::Display for WebFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchName => write!(f, "the name of the host leads nowhere"),
            Self::Forbidden => write!(f, "the host is at an address that may not be dialled"),
            Self::Unreachable(why) => write!(f, "the host cannot be reached: {why}"),
            Self::Tls(why) => write!(f, "the host does not speak TLS as it should: {why}"),
            Self::Broken(why) => write!(f, "the answer broke off or was none: {why}"),
            Self::TooLarge => write!(f, "the answer is too large"),
            Self::TimedOut => write!(f, "there was no answer in time"),
        }
    }
}

impl std::error::Error for WebFault {}

impl Post<'_> {
    /// Adds a header. Whoever takes values from others looks at them first: one that no header can have is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// The same, for a value that nothing may show.
    #[must_use]
    pub fn with_secret(mut self, name: &'static str, value: &[u8]) -> Self {
        if let Ok(mut value) = HeaderValue::from_bytes(value) {
            value.set_sensitive(true);
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }
}

impl Client {
    /// One that trusts the authorities of this file, or the public ones if there is none.
    pub fn new(authorities: Option<&Path>) -> Result<Self, ClientFault> {
        let fault = |why: String| ClientFault {
            path: authorities.unwrap_or(Path::new("public authorities")).to_owned(),
            why,
        };
        let mut roots = RootCertStore::empty();
        match authorities {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(path) => {
                let bytes = files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max)
                    .map_err(|error| fault(error.to_string()))?;
                for certificate in CertificateDer::pem_slice_iter(&bytes) {
                    let certificate = certificate.map_err(|error| fault(error.to_string()))?;
                    roots.add(certificate).map_err(|error| fault(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(fault("has no certificate in it".to_owned()));
                }
            }
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fault(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), names: Arc::new(SystemNames) })
    }

    /// The same, with names looked up elsewhere.
    #[must_use]
    pub fn looking_up(self, names: Arc<dyn Names>) -> Self {
        Self { names, ..self }
    }

    /// The addresses that a host has now, if `admits` says yes to all of them. One that is not fit spoils the rest: a
    /// name with a public address and one inside is a trap.
    pub async fn look_up(
        &self,
        address: &WebAddress,
        timeout: Duration,
        admits: impl Fn(IpAddr) -> bool,
    ) -> Result<Vec<SocketAddr>, WebFault> {
        let looking = self.names.look_up(address.host(), address.port());
        let found = tokio::time::timeout(timeout, looking).await.map_err(|_| WebFault::TimedOut)?;
        let found = found.map_err(|_| WebFault::NoSuchName)?;
        if found.is_empty() {
            return Err(WebFault::NoSuchName);
        }
        // A name cannot lead to another port than the one that was looked at.
        let fit = |found: &SocketAddr| found.port() == address.port() && admits(found.ip());
        if found.iter().all(fit) { Ok(found) } else { Err(WebFault::Forbidden) }
    }

    /// Sends a request to where `admits` says yes, and waits for the answer.
    pub async fn post(&self, post: Post<'_>, admits: impl Fn(IpAddr) -> bool) -> Result<Reply, WebFault> {
        let (timeout, address) = (post.timeout, post.address);
        let all = async {
            let found = self.look_up(address, timeout, admits).await?;
            let stream = connect(&found).await?;
            if !address.is_tls() {
                return exchange(stream, post).await;
            }
            let tls = |why: String| WebFault::Tls(why);
            let name = ServerName::try_from(address.host().to_owned()).map_err(|why| tls(why.to_string()))?;
            let stream = self.tls.connect(name, stream).await.map_err(|why| tls(why.to_string()))?;
            exchange(stream, post).await
        };
        tokio::time::timeout(timeout, all).await.unwrap_or(Err(WebFault::TimedOut))
    }
}

/// To the first of these that answers.
async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, WebFault> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.iter().take(limits::WEB_ADDRESSES_MAX) {
        let each = Duration::from_millis(limits::WEB_CONNECT_MS);
        match tokio::time::timeout(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    // The kind and not the text: where a name led is nobody's to know.
    Err(WebFault::Unreachable(last.kind().to_string()))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    post: Post<'_>,
) -> Result<Reply, WebFault> {
    let broken = |error: hyper::Error| WebFault::Broken(error.to_string());
    let Post { address, headers, body, answer_bytes_max, .. } = post;
    let mut connection = http1::Builder::new();
    connection.max_buf_size(limits::WEB_HEADERS_BYTES_MAX);
    let (mut sender, connection) = connection.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Gone with the request, whatever becomes of it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut request = Request::post(address.target())
        .body(Full::new(body))
        .map_err(|error| WebFault::Broken(error.to_string()))?;
    *request.headers_mut() = headers;
    let host = HeaderValue::from_str(address.authority())
        .map_err(|_| WebFault::Broken("the host cannot be written".to_owned()))?;
    request.headers_mut().insert(HOST, host);
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let reply = sender.send_request(request).await.map_err(broken)?;
    let status = reply.status();
    let Some(bytes_max) = answer_bytes_max else { return Ok(Reply { status, body: Bytes::new() }) };
    let body = Limited::new(reply.into_body(), bytes_max).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => WebFault::TooLarge,
        false => WebFault::Broken(error.to_string()),
    })?;
    Ok(Reply { status, body: body.to_bytes() })
}
