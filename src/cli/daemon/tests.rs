//! A gateway whose engine has ended does not go on as if nothing had happened.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::engine::{Appended, Decided, Observer};

/// Counts nothing, and panics when it is told to.
#[derive(Default)]
struct Trap(AtomicBool);

impl Observer for Trap {
    fn append_begins(&self) {
        if self.0.load(Ordering::Acquire) {
            panic!("the test wants it");
        }
    }

    fn append_ended(&self, _ended: Appended) {}
    fn decided(&self, _decided: &Decided) {}
}

fn open(root: &std::path::Path, trap: Arc<Trap>) -> Daemon {
    super::super::init::scaffold(root).map_err(|failure| failure.0).unwrap();
    let workspace = Workspace::new(root);
    let mut settings = Settings::default();
    settings.server.listen = ([127, 0, 0, 1], 0).into();
    let listening = listen(settings.server.listen, &settings.tls, root).unwrap();
    let opening = Opening { observer: Some(trap), ..Opening::default() };
    let gateway = Gateway::open_telling(root, "x", opening, &mut |_, _| {}).unwrap();
    let (_, admin) = gateway.tokens().ensure_admin(clock::now()).unwrap();
    let rules = RuleKeeper::start(workspace.clone(), &gateway, Starting::Join).unwrap();
    let app = App::new(gateway, rules, settings, Arc::new(Metrics::new()), &listening).unwrap();
    Daemon { app, listening, workspace, admin }
}

fn submit(daemon: &Daemon) -> impl FnOnce() + Send + 'static + use<> {
    let (address, root) = (daemon.address(), daemon.workspace.root().to_owned());
    move || {
        let token = std::fs::read_to_string(root.join("memory/admin.token")).unwrap();
        let spec = std::fs::read(root.join("docs/examples/taskspec-canonical.json")).unwrap();
        let head = format!(
            "POST /v1/handoffs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            token.trim(),
            spec.len()
        );
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&spec).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
}

#[test]
fn a_gateway_whose_engine_has_ended_is_not_ready_and_stops_with_a_fault() {
    let (directory, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let daemon = open(directory.path(), trap.clone());
    let app = daemon.app.clone();
    assert!(!format!("{:?}", look_at_condition(&app)).contains("engine"));
    let mut asking = None;
    let ended = daemon.run_until(
        || Ok(std::future::pending()),
        |daemon| {
            trap.0.store(true, Ordering::Release);
            asking = Some(std::thread::spawn(submit(daemon)));
        },
    );
    asking.unwrap().join().unwrap();
    assert_eq!(ended.map_err(|failure| failure.0), Ok(Exit::Unavailable));
    let condition = format!("{:?}", look_at_condition(&app));
    // Whoever it was: the caller, if the sequencer slept already.
    let begins = "Condition { failing: [Trouble { what: \"engine\", why: \"";
    assert!(condition.starts_with(begins) && condition.contains("has panicked"), "{condition}");
    // One that is told to stop has not failed.
    let elsewhere = tempfile::tempdir().unwrap();
    let daemon = open(elsewhere.path(), Arc::default());
    let ended = daemon.run_until(|| Ok(std::future::ready(())), |_| {});
    assert_eq!(ended.map_err(|failure| failure.0), Ok(Exit::Done));
}
