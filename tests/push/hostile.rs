//! Addresses that a stranger would have us dial: none is, neither when it is registered nor when it is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use handoffd::push::{Guard, Outcome};
use handoffd::web::Client;

use super::receiver::Receiver;
use super::stage::{Scene, Setting, Signposts, WHOLE, eventually, open_book, pace, task};

/// Addresses inside, one or two of each kind.
const INSIDE: [[u8; 4]; 14] = [
    [127, 0, 0, 1],
    [127, 255, 255, 254],
    [0, 0, 0, 0],
    [10, 0, 0, 1],
    [100, 64, 0, 1],
    [100, 100, 100, 200],
    [169, 254, 169, 254],
    [169, 254, 170, 2],
    [172, 16, 0, 1],
    [192, 168, 1, 1],
    [192, 0, 0, 192],
    [198, 18, 0, 1],
    [224, 0, 0, 1],
    [255, 255, 255, 255],
];

/// The same in every spelling that a look-up understands, and in every IPv6 form that leads back to it.
fn spellings([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let number = u32::from_be_bytes([a, b, c, d]);
    let (high, low) = (number >> 16, number & 0xffff);
    vec![
        format!("{a}.{b}.{c}.{d}"),
        format!("{number}"),
        format!("0x{number:x}"),
        format!("0{number:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{b}.{}", number & 0xffff),
        format!("{a}.{}", number & 0xff_ffff),
        format!("0x{a:X}.{b}.0{c:o}.{d}"),
        format!("[::ffff:{a}.{b}.{c}.{d}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[::{a}.{b}.{c}.{d}]"),
        format!("[::ffff:0:{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b:1::{a}.{b}.{c}.{d}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:{high:x}:{low:x}::1]"),
        format!("[fe80::5efe:{a}.{b}.{c}.{d}]"),
        format!("[2606:4700::5efe:{a}.{b}.{c}.{d}]"),
    ]
}

const OTHERS: &[&str] = &[
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[4000::1]",
    "168.63.129.16",
    "192.0.2.1",
    "192.88.99.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "0",
    "127.1",
    "nowhere.example",
    // Names that lead inside: at once, beside a public address, or only later.
    "inside.example",
    "metadata.example",
    "mapped.example",
    "both.example",
    "both-reversed.example",
    "later.example",
];

fn signposts() -> Signposts {
    Signposts::default()
        .lead("inside.example", &[&["127.0.0.1"]])
        .lead("metadata.example", &[&["169.254.169.254"]])
        .lead("mapped.example", &[&["::ffff:127.0.0.1"]])
        .lead("both.example", &[&["93.184.215.14", "127.0.0.1"]])
        .lead("both-reversed.example", &[&["127.0.0.1", "93.184.215.14"]])
        .lead("localhost.", &[&["127.0.0.1"]])
        // Public when it is registered, and never again.
        .lead("later.example", &[&["93.184.215.14"], &["127.0.0.1"]])
}

/// URLs that are read differently by different readers, and ones that are not for the web.
fn shapes(port: u16) -> Vec<String> {
    let mut shapes: Vec<String> = [
        "http://user@127.0.0.1:{}/",
        "http://user:secret@127.0.0.1:{}/",
        "http://93.184.215.14@127.0.0.1:{}/",
        "http://127.0.0.1:{}@93.184.215.14/",
        "http://93.184.215.14:80@127.0.0.1:{}/",
        "http://93.184.215.14#@127.0.0.1:{}/",
        "http://93.184.215.14\\@127.0.0.1:{}/",
        "http://127.0.0.1:{}\\.example/",
        "http://127.0.0.1:{}#.example/",
        "http://127。0。0。1:{}/",
        "http://①②⑦.0.0.1:{}/",
        "http://127.0.0.1%2f:{}/",
        "http://%31%32%37.0.0.1:{}/",
        "http://[::1%25lo]:{}/",
        "http://[::1:{}/",
        "http:///127.0.0.1:{}/",
        "http:127.0.0.1:{}/",
        "//127.0.0.1:{}/",
        "ftp://127.0.0.1:{}/",
        "file:///etc/passwd?{}",
        "gopher://127.0.0.1:{}/_x",
        "dict://127.0.0.1:{}/x",
        "ldap://127.0.0.1:{}/",
        "unix:///run/x.sock?{}",
        "javascript:alert({})",
        "http://127.0.0.1:{}/\r\nHost: x",
        "http://127.0.0.1 :{}/",
        "http://127.0.0.1\t:{}/",
    ]
    .iter()
    .map(|shape| shape.replace("{}", &port.to_string()))
    .collect();
    for port in [0, 22, 25, 53, 110, 143, 389, 465, 587, 993, 2049, 6000, 6379, 6667, 11211] {
        shapes.push(format!("https://93.184.215.14:{port}/"));
    }
    shapes
}

fn targets(port: u16) -> BTreeSet<String> {
    let hosts = INSIDE.into_iter().flat_map(spellings).chain(OTHERS.iter().map(|host| (*host).to_owned()));
    let mut targets: BTreeSet<String> = hosts
        .enumerate()
        // A connection counts, whatever would be said on it.
        .map(|(n, host)| format!("{}://{host}:{port}/hook", if n % 2 == 0 { "https" } else { "http" }))
        .collect();
    targets.extend(shapes(port));
    targets
}

#[tokio::test]
async fn hostile_targets_are_neither_registered_nor_dialled() {
    let inside = Receiver::willing();
    let targets = targets(inside.address.port());
    assert!(targets.len() >= 300, "{}", targets.len());
    let directory = tempfile::tempdir().unwrap();
    let client = Client::new(None).unwrap().looking_up(Arc::new(signposts()));
    let tasks = Arc::default();
    let scene = Scene::with(open_book(directory.path()), Guard::default(), client, pace(), tasks);
    let mut admitted = Vec::new();
    for url in &targets {
        if scene.courier.admit(url).await.is_ok() {
            admitted.push(url.clone());
        }
    }
    // But for the one that was public then.
    assert!(admitted.iter().all(|url| url.starts_with("https://later.example:")), "{admitted:?}");

    // As if they had been registered all the same: by an older version, or because their names led elsewhere then.
    for (n, url) in targets.iter().enumerate() {
        let task = task(n);
        scene.tasks.play(&task, WHOLE);
        scene.set(Setting::default().of(&task, url));
    }
    let tried = |n: usize| {
        let found =
            scene.courier.book().get(&task(n), &super::stage::owner("router"), None).unwrap().unwrap();
        found.attempts > 0
    };
    eventually("each was tried", || (0..targets.len()).all(tried).then_some(())).await;
    // Forbidden, or a name that leads nowhere. Anything else would mean that somebody was dialled.
    for (n, url) in targets.iter().enumerate() {
        let found =
            scene.courier.book().get(&task(n), &super::stage::owner("router"), None).unwrap().unwrap();
        let shown =
            found.to_json(handoffd::a2a::Version::V1_0)["metadata"]["delivery"]["lastError"].to_string();
        let never_dialled = shown.contains("may not be dialled") || shown.contains("leads nowhere");
        assert!(never_dialled, "{url}: {shown}");
    }
    let outcomes = scene.ears.outcomes();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Forbidden | Outcome::Unreachable)));
    assert_eq!(inside.connections(), 0);
    scene.stop().await;
}

/// The same listener and the same courier, with the operator's leave: what keeps the others out is the guard alone.
#[tokio::test]
async fn the_same_address_is_told_where_the_operator_allows_it() {
    let inside = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::local(directory.path());
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"] {
        let url = format!("http://{host}:{}/hook", inside.address.port());
        // Where `localhost` is ::1 too, one of its addresses is outside of what is allowed, and that spoils it.
        let is_v4 = host != "localhost";
        assert!(scene.courier.admit(&url).await.is_ok() || !is_v4, "{url}");
    }
    let task = task(1);
    scene.set(Setting::default().of(&task, &format!("http://2130706433:{}/hook", inside.address.port())));
    scene.play(&task, WHOLE);
    eventually("it is told", || (scene.state(&task, "c1") == "done").then_some(())).await;
    assert_eq!(inside.received().len(), 6);
    scene.stop().await;
}

/// A name that is public when it is looked at and inside when it is dialled.
#[tokio::test]
async fn a_name_that_leads_elsewhere_the_second_time_gains_nothing() {
    let inside = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    let client = Client::new(None).unwrap().looking_up(Arc::new(signposts()));
    let scene = Scene::with(open_book(directory.path()), Guard::default(), client, pace(), Arc::default());
    let url = format!("https://later.example:{}/hook", inside.address.port());
    scene.courier.admit(&url).await.unwrap();
    let task = task(1);
    scene.set(Setting::default().of(&task, &url));
    scene.play(&task, WHOLE);
    eventually("it was tried", || (scene.ears.outcomes().len() > 2).then_some(())).await;
    assert!(scene.ears.outcomes().iter().all(|outcome| *outcome == Outcome::Forbidden));
    assert_eq!(inside.connections(), 0);
    scene.stop().await;
}
