//! What receivers get: everything, in order, at least once, signed; and what becomes of those who do not take it.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use handoffd::a2a::Version;
use handoffd::dispatch::jwks;
use handoffd::proof::{Algorithm, Digest, Key, Purpose};
use handoffd::push::{Guard, Outcome, Pace, Registration};
use handoffd::web::Client;
use serde_json::Value as Json;

use super::receiver::{Answer, Received, Receiver};
use super::stage::{Scene, Setting, WHOLE, eventually, open_book, owner, pace, seed, task};

/// The number of the update in a notification, whatever its version; that of the task itself has none.
fn number(received: &Received) -> u64 {
    let body = received.json();
    let body =
        ["statusUpdate", "artifactUpdate", "task"].iter().find_map(|name| body.get(*name)).unwrap_or(&body);
    body["metadata"]["streamSeq"].as_u64().unwrap_or(1)
}

fn numbers(receiver: &Receiver) -> Vec<u64> {
    receiver.received().iter().map(number).collect()
}

/// The numbers of a whole life: the decision is not shown.
const ALL: [u64; 6] = [1, 3, 4, 5, 6, 7];

#[tokio::test]
async fn everything_is_told_in_order_in_the_version_it_was_set_in() {
    let (old, new) = (Receiver::willing(), Receiver::willing());
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    let task = task(1);
    let secrets = Setting { secrets: true, ..Setting::default() };
    scene.set(secrets.of(&task, &old.url("/old?a=b")));
    let new_one = Setting { config_id: "c2", version: Version::V1_0, ..Setting::default() };
    scene.set(new_one.of(&task, &new.url("/new")));
    // Bit by bit, as it happens.
    for step in 1..=WHOLE.len() {
        scene.play(&task, &WHOLE[..step]);
        let so_far = ALL.iter().filter(|n| **n <= step as u64).count();
        eventually("both are told", || {
            (old.received().len() >= so_far && new.received().len() >= so_far).then_some(())
        })
        .await;
    }
    eventually("it is done", || {
        (scene.state(&task, "c1") == "done" && scene.state(&task, "c2") == "done").then_some(())
    })
    .await;
    assert_eq!((numbers(&old), numbers(&new)), (ALL.to_vec(), ALL.to_vec()));

    let first = &old.received()[0];
    assert_eq!(first.target, "/old?a=b");
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("x-a2a-notification-token"), Some("hush-token"));
    assert_eq!(first.header("authorization"), Some("Bearer hush-credentials"));
    assert_eq!(first.json()["kind"], "task");
    let trace = first.header("traceparent").unwrap();
    assert!(trace.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && !trace.contains("b7ad6b7169203331"));
    let last = &old.received()[5];
    assert_eq!(
        (last.json()["kind"].as_str(), last.json()["final"].as_bool()),
        (Some("status-update"), Some(true))
    );

    let first = &new.received()[0];
    assert_eq!(first.header("content-type"), Some("application/a2a+json"));
    assert_eq!((first.header("x-a2a-notification-token"), first.header("authorization")), (None, None));
    assert_eq!(first.json()["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(new.received()[4].json()["artifactUpdate"]["taskId"], task.to_string());

    let mut ended = eventually("both are said to be", || {
        let ended = scene.ears.ended();
        (ended.len() == 2).then_some(ended)
    })
    .await;
    ended.sort();
    assert_eq!(ended, [format!("psh_{task}_router_c1 done"), format!("psh_{task}_router_c2 done")]);
    scene.stop().await;
}

/// As `docs/push.md` says it is done, with the public key alone.
fn verify(received: &Received, url: &str) -> Result<Json, &'static str> {
    let jwt = received.header("handoffd-signature").ok_or("no signature")?;
    let (signed, signature) = jwt.rsplit_once('.').ok_or("no JWT")?;
    let (header, claims) = signed.split_once('.').ok_or("no JWT")?;
    let read = |part: &str| -> Json { serde_json::from_slice(&base64url(part)).unwrap() };
    let (header, claims) = (read(header), read(claims));
    let keys = jwks([seed().public_hex().as_str()]);
    let jwk =
        keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == header["kid"]).ok_or("no key")?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let public = hex(&base64url(jwk["x"].as_str().unwrap()));
    let key = Key::ed25519("k", "gateway", Purpose::Dispatch, &public).unwrap();
    assert_eq!((header["alg"].as_str(), key.algorithm()), (Some("EdDSA"), Algorithm::Ed25519));
    key.verify(signed.as_bytes(), &hex(&base64url(signature))).map_err(|_| "another signature")?;
    if claims["aud"] != url {
        return Err("for another address");
    }
    if claims["body_digest"] != Digest::of(&received.body).to_string() {
        return Err("another body");
    }
    Ok(claims)
}

fn base64url(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.bytes() {
        bits = bits << 6 | DIGITS.iter().position(|digit| *digit == byte).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[tokio::test]
async fn a_receiver_can_tell_that_it_is_us_and_that_nothing_was_changed() {
    let receiver = Receiver::start(|n, _| Answer::Status(if n == 0 { 500 } else { 200 }));
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    let (task, url) = (task(1), receiver.url("/hook"));
    scene.set(Setting::default().of(&task, &url));
    scene.play(&task, WHOLE);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    let received = receiver.received();
    let claims: Vec<Json> = received.iter().map(|one| verify(one, &url).unwrap()).collect();
    assert_eq!(claims[0]["sub"], task.to_string());
    assert_eq!(claims[0]["exp"].as_u64().unwrap() - claims[0]["iat"].as_u64().unwrap(), 300);
    // The first was tried twice, under one id; the others have ids of their own.
    let ids: Vec<&str> = claims.iter().map(|claims| claims["jti"].as_str().unwrap()).collect();
    assert_eq!(ids[0], ids[1]);
    let different: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(different.len(), ALL.len());

    let mut changed = received[1].clone();
    changed.body.push(b' ');
    assert_eq!(verify(&changed, &url).unwrap_err(), "another body");
    assert_eq!(verify(&received[1], "https://other.example/").unwrap_err(), "for another address");
    scene.stop().await;
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again_and_nothing_overtakes_it() {
    // No, no, yes; and then again for the third.
    let receiver = Receiver::start(|n, _| match n {
        0 | 1 | 4 => Answer::Status(503),
        5 => Answer::Silence,
        _ => Answer::Status(200),
    });
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    let task = task(1);
    scene.tasks.trouble(2);
    scene.set(Setting::default().of(&task, &receiver.url("/")));
    scene.play(&task, WHOLE);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    assert_eq!(numbers(&receiver), [1, 1, 1, 3, 4, 4, 4, 5, 6, 7]);
    let outcomes = scene.ears.outcomes();
    let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert_eq!((count(Outcome::Refused), count(Outcome::TimedOut), count(Outcome::Delivered)), (3, 1, 6));
    scene.stop().await;
}

#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let elsewhere = Receiver::willing();
    let to = elsewhere.url("/there");
    let receiver = Receiver::start(move |_, _| Answer::Redirect(to.clone()));
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    let task = task(1);
    scene.set(Setting::default().of(&task, &receiver.url("/")));
    scene.play(&task, WHOLE);
    eventually("it was tried", || (receiver.received().len() > 2).then_some(())).await;
    assert_eq!(scene.state(&task, "c1"), "retrying");
    assert_eq!(elsewhere.connections(), 0);
    assert!(numbers(&receiver).iter().all(|n| *n == 1));
    scene.stop().await;
}

#[tokio::test]
async fn a_receiver_that_has_had_its_time_is_given_up_visibly_and_goes_on_where_it_stopped() {
    let well = Arc::new(AtomicBool::new(false));
    let now = well.clone();
    let receiver = Receiver::start(move |n, _| {
        Answer::Status(if n < 2 || now.load(Ordering::SeqCst) { 200 } else { 500 })
    });
    let other = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let pace = Pace { retry: Duration::from_millis(60), ..pace() };
    let client = Client::new(None).unwrap();
    let scene = Scene::with(open_book(directory.path()), guard, client, pace, Arc::default());
    let task = task(1);
    let setting = || Setting { secrets: true, ..Setting::default() };
    scene.set(setting().of(&task, &receiver.url("/")));
    scene.set(Setting { config_id: "c2", ..Setting::default() }.of(&task, &other.url("/")));
    scene.play(&task, WHOLE);
    eventually("it is given up", || (scene.state(&task, "c1") == "failed").then_some(())).await;
    eventually("the other is told", || (scene.state(&task, "c2") == "done").then_some(())).await;
    let found = scene.courier.book().get(&task, &owner("router"), Some("c1")).unwrap().unwrap();
    let shown = found.to_json(Version::V0_3);
    assert_eq!(shown["metadata"]["delivery"]["lastError"], "it answered 500");
    assert_eq!(shown["metadata"]["delivery"]["deliveredSeq"], 3);
    assert!(found.config.credentials.is_none(), "its secrets are gone");
    let said = format!("psh_{task}_router_c1 failed");
    eventually("it is said", || scene.ears.ended().contains(&said).then_some(())).await;
    // Nothing more is sent: not when it is woken, with another one behind it, and nothing comes before what is told below.
    let sent = receiver.received().len();
    scene.courier.wake(&task);
    let next = super::stage::task(2);
    scene.set(Setting { config_id: "c2", ..Setting::default() }.of(&next, &other.url("/")));
    scene.play(&next, WHOLE);
    eventually("the next one is told", || (scene.state(&next, "c2") == "done").then_some(())).await;
    assert_eq!(receiver.received().len(), sent);

    // Set again, from the end of the task: what was never taken comes first.
    well.store(true, Ordering::SeqCst);
    let mut again = Setting { from: 7, ..setting() }.of(&task, &receiver.url("/"));
    again.push_id = "psh_again".to_owned();
    scene.set(again);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    assert_eq!(numbers(&receiver)[sent..], [4, 5, 6, 7]);
    scene.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_and_an_owner_who_may_not_read_are_told_nothing_more() {
    let gone = Receiver::start(|_, _| Answer::Status(410));
    let spared = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    scene.tasks.play(&task(1), WHOLE);
    scene.tasks.play(&task(2), WHOLE);
    scene.tasks.ban(&owner("banned"));
    scene.set(Setting::default().of(&task(1), &gone.url("/")));
    scene.set(Setting { owner: "banned", ..Setting::default() }.of(&task(2), &spared.url("/")));
    eventually("both have ended", || (scene.ears.ended().len() == 2).then_some(())).await;
    assert_eq!((gone.received().len(), spared.connections()), (1, 0));
    assert_eq!(scene.state(&task(1), "c1"), "failed");
    scene.stop().await;
}

#[tokio::test]
async fn slow_receivers_of_one_owner_hold_up_nobody_else() {
    let slow = Receiver::start(|_, _| Answer::Silence);
    let quick = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    // Longer than anybody here waits: were the quick one behind the slow ones, it would never be told.
    let pace = Pace { timeout: Duration::from_secs(120), ..pace() };
    let client = Client::new(None).unwrap();
    let scene = Scene::with(open_book(directory.path()), guard, client, pace, Arc::default());
    for n in 0..80 {
        scene.tasks.play(&task(n), WHOLE);
        scene.set(Setting { owner: "slow", ..Setting::default() }.of(&task(n), &slow.url("/")));
    }
    eventually("the slow ones are under way", || (slow.connections() >= 16).then_some(())).await;
    scene.tasks.play(&task(100), WHOLE);
    scene.set(Setting::default().of(&task(100), &quick.url("/")));
    eventually("the quick one is told", || (scene.state(&task(100), "c1") == "done").then_some(())).await;
    assert_eq!(slow.connections(), 16, "no more at once of one owner");
    scene.stop().await;
}

#[tokio::test]
async fn after_a_restart_it_goes_on_where_it_stopped() {
    let receiver = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let task = task(1);
    let scene = Scene::local(directory.path());
    scene.set(Setting { secrets: true, ..Setting::default() }.of(&task, &receiver.url("/")));
    scene.play(&task, &WHOLE[..4]);
    eventually("the first are told", || (receiver.received().len() == 3).then_some(())).await;
    // The answer is in, but it may not have been counted yet.
    eventually("they are counted", || {
        let found = scene.courier.book().get(&task, &owner("router"), None).unwrap().unwrap();
        (found.delivered == 4).then_some(())
    })
    .await;
    let tasks = scene.tasks.clone();
    scene.stop().await;
    // It went on while nobody was there to tell.
    tasks.play(&task, WHOLE);

    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let client = Client::new(None).unwrap();
    let scene = Scene::with(open_book(directory.path()), guard, client, pace(), tasks);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    assert_eq!(numbers(&receiver), ALL);
    assert_eq!(receiver.received()[5].header("x-a2a-notification-token"), Some("hush-token"));
    scene.stop().await;
}

/// Killed between an answer and its being written down: told again, and nothing is lost.
#[tokio::test]
async fn after_a_crash_nothing_is_lost() {
    let receiver = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let task = task(1);
    let scene = Scene::local(directory.path());
    scene.set(Setting::default().of(&task, &receiver.url("/")));
    scene.play(&task, &WHOLE[..4]);
    eventually("the first are told", || (receiver.received().len() == 3).then_some(())).await;
    let tasks = scene.tasks.clone();
    drop(scene);
    tasks.play(&task, WHOLE);
    // Before it was written down how far it had come: as if that document were from before, or were not there.
    let _ = std::fs::remove_file(directory.path().join("push/progress.json"));
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let client = Client::new(None).unwrap();
    let scene = Scene::with(open_book(directory.path()), guard, client, pace(), tasks);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    let mut told = numbers(&receiver);
    assert_eq!(told[3..], ALL, "again from the first");
    told.dedup();
    assert_eq!(told, [&[1, 3, 4][..], &ALL].concat());
    scene.stop().await;
}

#[tokio::test]
async fn secrets_go_to_the_receiver_and_nowhere_else() {
    let receiver = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    let task = task(1);
    let registration = Setting { secrets: true, ..Setting::default() }.of(&task, &receiver.url("/"));
    let is_silent = |one: &Registration| {
        let texts = [
            format!("{one:?}"),
            one.to_json(Version::V0_3).to_string(),
            one.to_json(Version::V1_0).to_string(),
        ];
        texts.iter().all(|text| !text.contains("hush"))
    };
    assert!(is_silent(&registration));
    scene.set(registration);
    let file = directory.path().join("push").join(format!("{task}.json"));
    let kept = || std::fs::read_to_string(&file).unwrap();
    assert!(kept().contains("hush-token") && kept().contains("hush-credentials"));
    scene.play(&task, WHOLE);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    eventually("the file has forgotten them", || (!kept().contains("hush")).then_some(())).await;
    scene.stop().await;
}

/// A listener that speaks TLS, with a certificate that only its own authority vouches for. Says how many requests came.
fn tls_receiver(directory: &Path) -> (u16, Arc<std::sync::Mutex<Vec<String>>>) {
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};
    let run = |arguments: &str| {
        let made =
            Command::new("openssl").current_dir(directory).args(arguments.split(' ')).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    };
    let common = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    run(&format!("{common} -subj /CN=authority -keyout ca.key -out ca.pem"));
    run(&format!(
        "{common} -subj /CN=hook -keyout hook.key -out hook.pem -CA ca.pem -CAkey ca.key \
         -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1"
    ));
    let chain = vec![CertificateDer::from_pem_file(directory.join("hook.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(directory.join("hook.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let all = heads.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut bytes = vec![0; 16 * 1024];
            let Ok(n) = tls.read(&mut bytes) else { continue };
            all.lock().unwrap().push(String::from_utf8_lossy(&bytes[..n]).into_owned());
            let _ = tls.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n");
            let _ = tls.flush();
        }
    });
    (port, heads)
}

#[tokio::test]
async fn a_receiver_with_tls_is_told_if_its_certificate_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let (port, heads) = tls_receiver(directory.path());
    let task = task(1);
    let guard = || Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let url = format!("https://127.0.0.1:{port}/hook");

    let strict = tempfile::tempdir().unwrap();
    let client = Client::new(None).unwrap();
    let scene = Scene::with(open_book(strict.path()), guard(), client, pace(), Arc::default());
    scene.set(Setting { secrets: true, ..Setting::default() }.of(&task, &url));
    scene.play(&task, WHOLE);
    eventually("it was tried", || (scene.ears.outcomes().len() > 1).then_some(())).await;
    assert!(heads.lock().unwrap().is_empty(), "nothing is said to a stranger");
    scene.stop().await;

    let trusting = tempfile::tempdir().unwrap();
    let client = Client::new(Some(&directory.path().join("ca.pem"))).unwrap();
    let pace = Pace { timeout: Duration::from_secs(10), ..pace() };
    let scene = Scene::with(open_book(trusting.path()), guard(), client, pace, Arc::default());
    scene.set(Setting { secrets: true, ..Setting::default() }.of(&task, &url));
    scene.play(&task, WHOLE);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), ALL.len());
    assert!(heads[0].starts_with("POST /hook HTTP/1.1") && heads[0].contains("Bearer hush-credentials"));
    scene.stop().await;
}
