//! The running gateway: opens the workspace, serves it, watches its rules, and lets go of it in order.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{Exit, Failure, notify};
use crate::callers::AdminFile;
use crate::console;
use crate::engine::PromotionRules;
use crate::gateway::{Cause, Gateway, Opening, RuleKeeper, Starting, Watch};
use crate::http::{App, Listening, Metrics, Renewed, for_the_log, listen, look_at_condition};
use crate::limits;
use crate::os::{clock, files};
use crate::policy::Workspace;
use crate::promotion::AutomaticRollback;
use crate::settings::{PolicyApproval, PolicyReload, Promotion, Settings};

/// A gateway that is ready to serve.
#[derive(Debug)]
pub(super) struct Daemon {
    app: Arc<App>,
    listening: Listening,
    workspace: Workspace,
    pub(super) admin: AdminFile,
}

impl Daemon {
    /// Binds the address, opens the workspace and puts its rules in force.
    pub(super) fn open(
        workspace: &Workspace,
        settings: Settings,
        starting: Starting,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Failure> {
        if settings.a2a.anonymous && !settings.server.listen.ip().is_loopback() {
            return Err(Failure(format!(
                "[a2a] anonymous lets everybody in without a token, so it is for a loopback address, and {} is none: set it to false, or listen on 127.0.0.1",
                settings.server.listen
            )));
        }
        // The address first: whoever finds the workspace locked is told where it is served.
        let listening = listen(settings.server.listen, &settings.tls, workspace.root())
            .map_err(|fault| Failure(fault.to_string()))?;
        let metrics = Arc::new(Metrics::new());
        let opening = Opening {
            ledger: settings.ledger.url.clone(),
            waiting_max: settings.server.waiting_decisions_max,
            observer: Some(metrics.clone()),
            promotion: promotion_rules(&settings.promotion),
            approval_wait_s: whole_seconds(settings.approvals.wait),
            asks_first: settings.policy.approval == PolicyApproval::Operator,
        };
        let address = listening.address().to_string();
        let gateway = Gateway::open_telling(workspace.root(), &address, opening, tell)
            .map_err(|fault| Failure(fault.to_string()))?;
        if let Some(torn) = gateway.torn() {
            tracing::warn!(bytes = torn.bytes, file = %torn.file.display(), "a crash had left something behind the last commit; it was never acknowledged");
        }
        if has_lost_tokens(&gateway) {
            tracing::warn!(file = %gateway.tokens().tokens().display(), "the file of the tokens is gone: none that was in it counts any more, and a new admin's is made");
        }
        // A start has no tokens to go on with.
        let (_, admin) = gateway
            .tokens()
            .ensure_admin(clock::now())
            .map_err(|fault| Failure(format!("nobody can be let in, so nothing is served: {fault}")))?;
        let rules = RuleKeeper::start(workspace.clone(), &gateway, starting).map_err(Failure)?;
        if let Some(pending) = rules.pending() {
            tracing::error!(digest = %pending.digest(), "the files are not the policy set in force; nothing is decided until an operator says yes to them, or they are put back");
        }
        let app = App::new(gateway, rules, settings, metrics, &listening)?;
        show_certificate(&app)
            .map_err(|error| Failure(format!("the certificate cannot be shown: {error}")))?;
        Ok(Self { app, listening, workspace: workspace.clone(), admin })
    }

    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.listening.address()
    }

    pub(super) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Serves until a signal says stop; meanwhile follows the rules and drops old bodies. `greet` is called once it
    /// can be told to stop.
    pub(super) fn run(self, greet: impl FnOnce(&Self)) -> Result<Exit, Failure> {
        let by_itself = self.app.settings.policy.reload == PolicyReload::Auto;
        let watch = Watch::over(self.workspace.root(), by_itself);
        let bell = watch.bell();
        follow_rules(self.app.clone(), watch)?;
        if self.app.gateway().sharing().is_some() {
            follow_shared(self.app.clone())?;
        }
        if let Some(keep) = self.app.settings.retention.bodies {
            drop_bodies(self.app.clone(), keep)?;
        }
        watch_condition(self.app.clone())?;
        follow_certificates(self.app.clone())?;
        let app = self.app.clone();
        let hung_up = move || {
            bell.ring();
            if let Some(certificates) = &app.certificates {
                certificates.ask();
            }
        };
        self.run_until(|| signals(hung_up), greet)
    }

    /// Serves until `stop` is ready; then finishes what is under way, leaves a checkpoint and gives the workspace
    /// back. So it does when the engine has ended by itself, and says that it could not go on.
    pub(super) fn run_until<S: Future<Output = ()>>(
        self,
        stop: impl FnOnce() -> std::io::Result<S>,
        greet: impl FnOnce(&Self),
    ) -> Result<Exit, Failure> {
        let app = self.app.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers())
            .max_blocking_threads(limits::BLOCKING_THREADS_MAX)
            .enable_all()
            .build()?;
        look_after_those_alone(app.clone(), runtime.handle().clone())?;
        let (end, ended) = tokio::sync::oneshot::channel();
        app.gateway().engine().when_ended(move |why| {
            tracing::error!(why, "the engine has ended: nothing is decided any more");
            // Nobody waits for it who is stopping already.
            let _ = end.send(());
        });
        let served = runtime.block_on(async {
            let stop = stop()?;
            // Not a line earlier: whoever hears it may stop it at once, and a signal that nobody waits for yet would
            // end the process where it stands. It listens already, so whoever is told can connect.
            greet(&self);
            notify::tell("READY=1");
            // Said when it begins: what is under way may take its time.
            let stop = async move {
                tokio::select! {
                    () = stop => {}
                    Ok(()) = ended => {}
                }
                notify::tell("STOPPING=1");
                tracing::info!("stopping");
            };
            let pages = console::pages(app.clone());
            let served = self.listening.serve(app.clone(), pages, stop, told_again()).await;
            served.map_err(|fault| Failure(fault.to_string()))
        });
        let finished = app.gateway().finish();
        app.finish();
        // What is still waiting on a socket has been told to end; nothing more is decided.
        runtime.shutdown_timeout(Duration::from_secs(1));
        served?;
        finished.map_err(|fault| Failure(format!("the last checkpoint could not be left: {fault}")))?;
        tracing::info!(entries = app.gateway().engine().head(), "stopped");
        Ok(if app.gateway().engine().ended().is_some() { Exit::Unavailable } else { Exit::Done })
    }
}

/// Has it been served before, with tokens that are in no file any more? What replicas share is not in that file.
fn has_lost_tokens(gateway: &Gateway) -> bool {
    let is_own = gateway.sharing().is_none() && gateway.engine().head() > 0;
    is_own && matches!(gateway.tokens().load_if_any(), Ok(None))
}

/// INVARIANT (one worker waits for the disk): a submit that comes alone is decided and written by the worker that read it, so
/// there is always another one for everybody else, also on one processor. Telling the runtime that a worker blocks
/// (`block_in_place`) would have it wake a thread for each submit, and costs more than the rest of the decision. One that
/// waits long is looked after.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2))
}

/// Has others heard while somebody waits for the disk on a thread of the runtime.
fn look_after_those_alone(app: Arc<App>, runtime: tokio::runtime::Handle) -> std::io::Result<()> {
    let look = move || app.alone.look_after(&runtime, || !*app.stopping.borrow());
    std::thread::Builder::new().name("alone".into()).spawn(look).map(drop)
}

/// Ready when a signal says stop. SIGHUP has the rules and the certificates read again, or says that the terminal is gone.
fn signals(hung_up: impl Fn() + Send + 'static) -> std::io::Result<impl Future<Output = ()>> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let began_at_terminal = is_at_terminal();
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            if began_at_terminal && !is_at_terminal() {
                let _ = tell.send(());
                return;
            }
            hung_up();
        }
    });
    let stop = told_to_stop()?;
    Ok(async move {
        tokio::select! {
            () = stop => {}
            Ok(()) = told => {}
        }
    })
}

/// Does a person see it? One that is closed is a terminal no more.
fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stdout().is_terminal() || std::io::stderr().is_terminal()
}

/// Ready when SIGTERM or Ctrl-C says stop, or when the terminal is gone: for what has no files to read again.
pub(super) fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let (mut hang_up, stop) = (signal(SignalKind::hangup())?, told_to_stop()?);
    Ok(async move {
        tokio::select! {
            _ = hang_up.recv() => {}
            () = stop => {}
        }
    })
}

/// Ready when SIGTERM or Ctrl-C says stop.
fn told_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Ready when that is said once more. What was said before this is first asked for does not count.
async fn told_again() {
    match told_to_stop() {
        Ok(told) => told.await,
        Err(_) => std::future::pending().await,
    }
}

/// What the engine has to know of promotion.
fn promotion_rules(settings: &Promotion) -> PromotionRules {
    PromotionRules {
        canary_of: settings.canary_runs as u64,
        canary_deadline_s: whole_seconds(settings.canary_deadline),
        automatic: AutomaticRollback {
            codes: settings.rollback_codes.clone(),
            critical: settings.rollback_on_critical,
            wrong_agent: settings.rollback_on_wrong_agent,
            canary: settings.rollback_in_canary,
        },
    }
}

fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX / 4)
}

/// Puts changed rules in force as they change.
fn follow_rules(app: Arc<App>, mut watch: Watch) -> Result<(), Failure> {
    let follow = move || {
        loop {
            let cause = if watch.wait() { Cause::Told } else { Cause::Noticed };
            let reloaded = app.rules().reload(cause);
            app.took_in(&reloaded);
            if let Some(failed) = reloaded.failed {
                tracing::error!(why = %for_the_log(&failed.why()), "changed rules are not in force; the ones before them are");
            }
        }
    };
    std::thread::Builder::new().name("rules".into()).spawn(follow)?;
    Ok(())
}

/// Goes by what other gateways change of what is shared.
fn follow_shared(app: Arc<App>) -> Result<(), Failure> {
    let follow = move || {
        let mut said = None;
        for look in 1_u64.. {
            std::thread::sleep(Duration::from_millis(limits::RELOAD_GLANCE_MS));
            app.rules().look_at_shared();
            if look % limits::CHECKPOINT_SHARED_LOOKS == 0 {
                app.gateway().share_checkpoint();
            }
            let differs = app.rules().differs();
            if differs != said {
                match &differs {
                    Some(why) => {
                        tracing::error!(why = %for_the_log(why), "nothing is decided here")
                    }
                    None => tracing::info!("the rules here are those in force"),
                }
                said = differs;
            }
        }
    };
    std::thread::Builder::new().name("shared-rules".into()).spawn(follow)?;
    Ok(())
}

/// Leaves the certificate in force where the commands on this machine look for it; nothing where there is none.
fn show_certificate(app: &App) -> std::io::Result<()> {
    let path = app.gateway().files().served_certificate();
    match &app.certificates {
        Some(certificates) => certificates.show_at(&path),
        None => files::remove(&path),
    }
}

/// Takes up certificates that were replaced.
fn follow_certificates(app: Arc<App>) -> Result<(), Failure> {
    let Some(certificates) = app.certificates.clone() else { return Ok(()) };
    let follow = move || {
        loop {
            std::thread::sleep(Duration::from_millis(limits::RELOAD_GLANCE_MS));
            if certificates.look() == Renewed::Changed {
                tracing::info!("changed certificates are in force for new connections");
                if let Err(error) = show_certificate(&app) {
                    tracing::error!(%error, "commands on this machine do not know the new certificate");
                }
            }
        }
    };
    std::thread::Builder::new().name("certificates".into()).spawn(follow)?;
    Ok(())
}

/// Logs what goes wrong, and when it is well again.
fn watch_condition(app: Arc<App>) -> Result<(), Failure> {
    let watch = move || loop {
        look_at_condition(&app);
        std::thread::sleep(Duration::from_millis(limits::CONDITION_LOOK_MS));
    };
    std::thread::Builder::new().name("condition".into()).spawn(watch)?;
    Ok(())
}

/// Drops bodies that are older than they are to be kept; the chain stays as it is.
fn drop_bodies(app: Arc<App>, keep: Duration) -> Result<(), Failure> {
    const EVERY: Duration = Duration::from_secs(60 * 60);
    let drop_old = move || {
        loop {
            match app.gateway().drop_bodies(clock::now().plus_seconds(-whole_seconds(keep))) {
                Ok(bodies) if bodies > 0 => tracing::info!(bodies, "old bodies were dropped"),
                Ok(_) => {}
                Err(fault) => tracing::error!(%fault, "old bodies could not be dropped"),
            }
            std::thread::sleep(EVERY);
        }
    };
    std::thread::Builder::new().name("retention".into()).spawn(drop_old)?;
    Ok(())
}

#[cfg(test)]
mod tests;
