//! `handoffd demo`: a narrated walk through every gate, with a real gateway in a scratch workspace.

mod promotion;
mod scratch;
mod steps;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value as Json, json};

use super::client::{Ask, Client};
use super::daemon::{Daemon, told_to_end};
use super::printer::{BOLD, DIM, GREEN, RED, YELLOW};
use super::{Context, Exit, Failure, init};
use crate::callers::{Role, Standing, TokenFiles};
use crate::gateway::{Files, Starting};
use crate::json::printable;
use crate::ledger::verify;
use crate::limits;
use crate::os::{clock, files, random};
use crate::policy::Workspace;
use crate::proof::{Key, Keyring, Purpose, Secret};
use crate::settings::Settings;
use promotion::Cast;
use scratch::Scratch;
use steps::{Examples, STEPS, Step};

/// Walk through every gate in a scratch workspace, and leave nothing behind.
///
/// Starts a real gateway on a free port of this machine, shows what it decides and why, brings a route from dev to
/// live and back, and shows what becomes of a ledger that somebody edits. Takes less than a minute.
///
/// Exit: 0 all went as told, 1 it did not.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Do not pause between the steps
    #[arg(long)]
    fast: bool,
}

/// The key with which user:main signs.
const KEY_ID: &str = "demo-user-main-1";

/// How long there is to read a step.
const PAUSE: Duration = Duration::from_millis(1200);

impl Demo {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let scratch = Scratch::make()?;
        let show = Show {
            context,
            pause: if self.fast || context.printer.is_json() { Duration::ZERO } else { PAUSE },
            interrupted: Arc::new(AtomicBool::new(false)),
        };
        let shown = show.all(scratch.path());
        drop(scratch);
        if show.is_over() {
            context.printer.note("interrupted; nothing is left behind");
            return Ok(Exit::Refused);
        }
        let rows = shown?;
        let good = rows.iter().all(|row| row.get("asTold") == Some(&Json::Bool(true)));
        if context.printer.is_json() {
            context.printer.value(&json!({"ok": good, "steps": rows}));
        } else if good {
            context.printer.line(
                "\nThat was all, and nothing is left behind. Go on with: handoffd init, then: handoffd serve",
            );
        } else {
            context.printer.error("not everything went as told; please report it");
        }
        Ok(if good { Exit::Done } else { Exit::Refused })
    }
}

struct Show<'c> {
    context: &'c Context,
    pause: Duration,
    interrupted: Arc<AtomicBool>,
}

/// A gateway in this process.
struct Served {
    cast: Cast,
    keyring: Keyring,
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Show<'_> {
    fn all(&self, root: &Path) -> Result<Vec<Json>, Failure> {
        let Served { cast, keyring, stop, thread } = self.serve(root)?;
        let walked = self.walk(root, &cast, &keyring);
        // It holds the gateway, which must have ended when we clear away.
        drop(cast);
        // It ends first, whatever came of it: nothing may be written where we are about to clear away.
        let _ = stop.send(());
        let ended = thread.join().unwrap_or_else(|_| Err(Failure::new("the gateway did not end well")));
        let mut rows = walked?;
        ended?;
        if !self.is_over() {
            rows.push(self.tamper(root, rows.len() + 1)?);
        }
        Ok(rows)
    }

    fn walk(&self, root: &Path, cast: &Cast, keyring: &Keyring) -> Result<Vec<Json>, Failure> {
        self.say(&format!(
            "A gateway listens on {GREEN}{}{GREEN:#}, on a workspace of its own in {}.",
            cast.router.base(),
            root.display()
        ));
        let example = |name: &str| -> Result<Json, Failure> {
            let path = root.join("docs/examples").join(name);
            let text = files::read_bounded(&path, limits::TASK_SPEC.bytes_max)?;
            serde_json::from_slice(&text).map_err(|error| Failure(error.to_string()))
        };
        let examples = Examples {
            canonical: example("taskspec-canonical.json")?,
            delegated: example("taskspec-delegated-read.json")?,
            key: keyring.get(KEY_ID).ok_or_else(|| Failure::new("the key was not added"))?,
            now: clock::now(),
        };
        let mut rows = Vec::new();
        for (n, step) in STEPS.iter().enumerate() {
            if self.is_over() {
                break;
            }
            rows.push(self.step(n + 1, step, &cast.router, &examples)?);
            self.rest();
        }
        if !self.is_over() {
            rows.extend(self.promote(STEPS.len() + 1, cast, &examples)?);
        }
        Ok(rows)
    }

    /// Makes the workspace and starts the gateway on it.
    fn serve(&self, root: &Path) -> Result<Served, Failure> {
        init::scaffold(root)?;
        // The shipped policy wants a channel; the first delegation of a walk has none yet.
        let path = root.join("policies/delegation/user-main-v1.json");
        let policy = fs::read_to_string(&path)?;
        let policy = policy.replace("\"allowWithoutChannel\": false", "\"allowWithoutChannel\": true");
        files::replace_public(&path, policy.as_bytes())?;

        promotion::add_route(root)?;

        let workspace = Workspace::new(root);
        let token = |name: &str, role: Role, agent: Option<&str>| -> Result<_, Failure> {
            let standing = Standing::of(role, agent, None).map_err(|fault| Failure(fault.to_string()))?;
            let name = name.parse().map_err(Failure)?;
            Ok(TokenFiles::of(root).make(name, standing, clock::now(), None)?.2)
        };
        let router = token("demo-router", Role::Orchestrator, Some("decision-router"))?;
        let operator = token(promotion::OPERATOR, Role::Operator, None)?;
        let agent = token("demo-agent", Role::Agent, Some(promotion::AGENT))?;
        let secret = Secret::new(random::secret_bytes::<32>()?.to_vec());
        let key = Key::hmac(KEY_ID, "user:main", Purpose::Envelope, secret)
            .ok_or_else(|| Failure::new("no key could be made"))?;
        workspace
            .change_keyring(|keyring| keyring.add(key).map_err(|fault| fault.to_string()))
            .map_err(Failure)?;
        let keyring = workspace.load_keyring()?;

        let mut settings = Settings::default();
        settings.server.listen = ([127, 0, 0, 1], 0).into();
        settings.server.shutdown_timeout = Duration::from_secs(1);
        let daemon = Daemon::open(&workspace, settings, Starting::Join, &mut |_, _| {})?;
        let here = |token: &str| Client::here(daemon.address(), token);
        let cast = Cast {
            router: here(router.expose())?,
            operator: here(operator.expose())?,
            agent: here(agent.expose())?,
            app: daemon.app().clone(),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let interrupted = self.interrupted.clone();
        let run = move || {
            let stop = || {
                let told = told_to_end()?;
                Ok(async move {
                    tokio::select! {
                        () = told => interrupted.store(true, Ordering::SeqCst),
                        _ = stopped => {}
                    }
                })
            };
            daemon.run_until(stop, |_| {}).map(drop)
        };
        let thread = std::thread::Builder::new().name("demo".into()).spawn(run)?;
        Ok(Served { cast, keyring, stop, thread })
    }

    fn step(&self, n: usize, step: &Step, client: &Client, examples: &Examples<'_>) -> Result<Json, Failure> {
        self.title(n, step.title, step.story);
        let spec = (step.make)(examples).to_string();
        let answer = match client.ask(Ask::Post(Some(spec.as_bytes())), "/v1/handoffs") {
            Ok(reply) => reply.body,
            Err(_) if self.is_over() => Json::Null,
            Err(trouble) => return Err(Failure(trouble.to_string())),
        };
        let decision = answer.get("decision").and_then(Json::as_str).unwrap_or_default();
        let reasons = answer.get("reasons").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let codes: Vec<&str> =
            reasons.iter().filter_map(|reason| reason.get("code").and_then(Json::as_str)).collect();
        let replayed = answer.get("replayed") == Some(&Json::Bool(true));
        let as_told = decision == step.decision
            && replayed == step.replayed
            && step.code.map_or(codes.is_empty(), |code| codes.contains(&code));
        let style = match decision {
            "allowed" => GREEN,
            "needs_approval" => YELLOW,
            _ => RED,
        };
        let again = if replayed { ", as before" } else { "" };
        self.say(&format!("   {style}{}{style:#}{again}", printable(decision)));
        // The reason that the step is about; the others are of the same making.
        for reason in reasons.iter().filter(|reason| reason.get("code").and_then(Json::as_str) == step.code) {
            let text =
                |name: &str| reason.get(name).and_then(Json::as_str).map(printable).unwrap_or_default();
            self.say(&format!("   {RED}{}{RED:#} at {}: {}", text("code"), text("path"), text("message")));
            self.say(&format!("   {DIM}hint: {}{DIM:#}", text("hint")));
        }
        if !as_told {
            self.context.printer.error(&format!(
                "expected {} {}",
                step.decision,
                step.code.unwrap_or_default()
            ));
        }
        Ok(
            json!({"step": step.title, "decision": decision, "codes": codes, "replayed": replayed, "asTold": as_told}),
        )
    }

    /// Edits the ledger as somebody with a reason to would, and has it verified.
    fn tamper(&self, root: &Path, n: usize) -> Result<Json, Failure> {
        self.title(
            n,
            "A ledger that somebody edits",
            "The gateway has stopped. Somebody turns a `denied` into an `allowed`, right in the file.",
        );
        let ledger = Files::of(root).ledger();
        let before = verify::verify_segments(&ledger, &[], &mut |_| {})
            .map_err(|finding| Failure(format!("the ledger does not verify: {finding}")))?;
        self.say(&format!("   before: {GREEN}good{GREEN:#}, {} entries", before.entries));
        let mut edited = false;
        for entry in fs::read_dir(&ledger)? {
            let path = entry?.path();
            let text = fs::read(&path)?;
            if let Some(at) = text.windows(6).position(|word| word == b"denied") {
                let (head, tail) = text.split_at(at);
                let tail = tail.get(6..).unwrap_or_default();
                files::replace_private(&path, &[head, b"allowed", tail].concat())?;
                edited = true;
                break;
            }
        }
        let found =
            verify::verify_segments(&ledger, &[], &mut |_| {}).err().map(|finding| finding.to_string());
        let shown = found.as_deref().map_or_else(|| "nothing was found".to_owned(), printable);
        self.say(&format!("   after:  {RED}bad{RED:#}, {shown}"));
        let as_told = edited && found.is_some();
        Ok(json!({"step": "A ledger that somebody edits", "finding": found, "asTold": as_told}))
    }

    fn title(&self, n: usize, title: &str, story: &str) {
        self.say(&format!("\n{BOLD}{n:>2} {title}{BOLD:#}\n   {story}"));
    }

    fn say(&self, text: &str) {
        if !self.context.printer.is_json() {
            self.context.printer.line(text);
        }
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Leaves time to read, and notices when nobody wants to any more.
    fn rest(&self) {
        let until = Instant::now() + self.pause;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
