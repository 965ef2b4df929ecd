//! HTTP/2: how long a connection is kept that nobody uses, and a stream that nobody reads.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::harness::{Daemon, eventually, spec};
use super::wire::{self, PATIENCE};

/// A client that answers whatever HTTP/2 asks of it.
struct Client {
    sender: http2::SendRequest<Full<Bytes>>,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Client {
    /// One that has so much room for each answer.
    async fn with_window(daemon: &Daemon, bytes: u32) -> Self {
        let stream = TcpStream::connect(daemon.address).await.unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(bytes);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        Self { sender, connection: tokio::spawn(connection) }
    }

    async fn get(&mut self, daemon: &Daemon, target: &str) -> Response<Incoming> {
        self.get_as(&daemon.admin, daemon, target).await
    }

    async fn get_as(&mut self, token: &str, daemon: &Daemon, target: &str) -> Response<Incoming> {
        let request = Request::get(format!("http://{}{target}", daemon.address))
            .header("Authorization", format!("Bearer {token}"))
            .body(Full::default())
            .unwrap();
        self.sender.ready().await.unwrap();
        self.sender.send_request(request).await.unwrap()
    }

    /// Waits until the other side has closed.
    async fn closed(self) {
        let _ = tokio::time::timeout(PATIENCE, self.connection).await.expect("it is still open");
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// Nobody is known who sends this, and nothing of it is kept.
#[test]
fn what_nobody_has_signed_is_not_kept() {
    const MIB: usize = 1024 * 1024;
    let daemon = Daemon::new();
    let before = daemon.resident_kib();
    run(async {
        let client = Client::with_window(&daemon, 65_535).await;
        let body = Bytes::from(vec![b' '; 15 * MIB]);
        let answers = (0..40).map(|_| {
            let request = Request::get(format!("http://{}/v1/state", daemon.address))
                .header("Handoffd-Signature", "x")
                .body(Full::from(body.clone()))
                .unwrap();
            client.sender.clone().send_request(request)
        });
        for answer in answers.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap().status(), StatusCode::UNAUTHORIZED);
        }
    });
    let grown = daemon.resident_kib().saturating_sub(before);
    assert!(grown < 100 * 1024, "{grown} KiB");
}

#[test]
fn a_connection_without_a_stream_is_closed_and_one_with_a_stream_is_kept() {
    let daemon = Daemon::with("[server]\nheader_timeout = \"3s\"\n");
    run(async {
        let mut follows = Client::with_window(&daemon, 65_535).await;
        let mut entries = follows.get(&daemon, "/v1/audit/stream").await.into_body();
        // Neither one that has never asked for anything, nor one that has been answered.
        let silent = Client::with_window(&daemon, 65_535).await;
        let mut answered = Client::with_window(&daemon, 65_535).await;
        let document = answered.get(&daemon, "/openapi.json").await;
        assert_eq!(document.status(), StatusCode::OK);
        let text = document.into_body().collect().await.unwrap().to_bytes();
        assert!(text.len() > 65_535 && text.ends_with(b"}"), "{} bytes", text.len());
        silent.closed().await;
        answered.closed().await;
        assert_eq!(daemon.submit(&spec("kept_0001")).status, 201);
        let mut told = String::new();
        while !told.contains("kept_0001") {
            let frame = tokio::time::timeout(PATIENCE, entries.frame()).await.expect("it is told nothing");
            told += &String::from_utf8_lossy(&frame.unwrap().unwrap().into_data().unwrap());
        }
    });
}

#[test]
fn a_stream_whose_reader_takes_nothing_is_reset() {
    let daemon = Daemon::with("[server]\nheader_timeout = \"3s\"\n");
    run(async {
        let mut takes_nothing = Client::with_window(&daemon, 0).await;
        let mut held = Vec::new();
        for target in ["/openapi.json", "/v1/audit/stream?from=1", "/v1/audit/export"] {
            held.push(takes_nothing.get(&daemon, target).await.into_body());
        }
        for body in held {
            let read = tokio::time::timeout(PATIENCE, body.collect()).await.expect("it is held for ever");
            assert!(read.is_err(), "nothing was to be taken");
        }
        takes_nothing.closed().await;
    });
    eventually("their places are free", || (daemon.metric("handoffd_connections")? <= 1.0).then_some(()));
}

/// Some of an export is read before its reader takes it; none of that leaves once the token is gone.
#[test]
fn an_export_ends_with_the_token_that_asked_for_it() {
    let daemon = Daemon::new();
    for n in 0..4 {
        let specs: Json = (0..100).map(|m| spec(&format!("export_{n}_{m:04}"))).collect();
        assert_eq!(daemon.post("/v1/handoffs/batch", specs).status, 200);
    }
    let whole = daemon.get("/v1/audit/export").body.len();
    let reader = daemon.token("reader", "auditor", None);
    run(async {
        let mut client = Client::with_window(&daemon, 65_535).await;
        let mut export = client.get_as(&reader, &daemon, "/v1/audit/export").await.into_body();
        let revoke = wire::Request::new("DELETE", "/v1/tokens/reader").token(&daemon.admin);
        assert_eq!(daemon.send(&revoke).status, 200);
        let mut taken = 0;
        let end = loop {
            match export.frame().await {
                Some(Ok(frame)) => taken += frame.into_data().unwrap().len(),
                end => break end,
            }
        };
        assert!(matches!(end, Some(Err(_))), "it looks as if it were whole");
        assert!(taken < whole / 2, "{taken} of {whole} bytes");
    });
}

#[test]
fn a_caller_follows_only_so_many_streams() {
    const MOST: usize = 2_000;
    let daemon = Daemon::new();
    let other = daemon.token("reader", "auditor", None);
    run(async {
        let (mut clients, mut followed) = (Vec::new(), Vec::new());
        while followed.len() < MOST {
            let mut client = Client::with_window(&daemon, 65_535).await;
            for _ in 0..50 {
                let stream = client.get(&daemon, "/v1/audit/stream").await;
                assert_eq!(stream.status(), StatusCode::OK, "{}", followed.len());
                followed.push(stream);
            }
            clients.push(client);
        }
        let client = clients.last_mut().unwrap();
        let refused = client.get(&daemon, "/v1/audit/stream").await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers().contains_key("retry-after"));
        // Others follow, and this one asks for what ends.
        assert_eq!(client.get_as(&other, &daemon, "/v1/audit/stream").await.status(), StatusCode::OK);
        assert_eq!(client.get(&daemon, "/v1/state").await.status(), StatusCode::OK);
        drop(followed.pop());
        let until = tokio::time::Instant::now() + PATIENCE;
        while client.get(&daemon, "/v1/audit/stream").await.status() != StatusCode::OK {
            assert!(tokio::time::Instant::now() < until, "there is never room again");
        }
    });
}
