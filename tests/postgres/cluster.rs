//! A private PostgreSQL on loopback, in a directory of its own, that ends with the test.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// A server.
pub(crate) struct Cluster {
    // Removed last.
    _directory: tempfile::TempDir,
    data: PathBuf,
    pub(crate) port: u16,
    server: Mutex<Option<Child>>,
    databases: AtomicU32,
    /// Settings beside those that all have.
    settings: Vec<String>,
}

/// What a server had at some time.
pub(crate) struct Backup {
    directory: tempfile::TempDir,
}

impl Backup {
    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

/// The server that the tests of this process share, as long as one of them has it.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

/// Waits until something holds; a test that waits for longer than a minute has failed.
#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn binary(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("the Debian package postgresql is needed");
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin").join(name)))
        })
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort();
    found.pop().expect("the Debian package postgresql is needed").1
}

fn is_root() -> bool {
    String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim() == "0"
}

/// A program of the server. It does not run as root, so as root it runs as the user of the Debian package; and it ends
/// when the thread that started it does, should nobody be left to stop it.
fn server_program(name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig").arg("SIGQUIT");
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    let program = if name == "tar" { PathBuf::from("tar") } else { binary(name) };
    command
        .arg(program)
        .current_dir("/")
        .env_clear()
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("PATH", "/usr/bin:/bin");
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn copy(from: &Path, to: &Path) {
    done(Command::new("cp").arg("-a").arg(from).arg(to));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    if is_root() {
        let mut chown = Command::new("chown");
        chown.arg("postgres:postgres").arg(directory.path());
        done(&mut chown);
    }
    directory
}

impl Cluster {
    /// The server that tests share.
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap();
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Self::start());
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    /// A server whose settings a test may change.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// One with other settings from the start, `name=value`.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        let directory = directory();
        let data = directory.path().join("data");
        // Making a cluster takes longer than most tests: the first one is kept, and the others begin as copies of it.
        let version = binary("initdb").ancestors().nth(2).unwrap().file_name().unwrap().to_owned();
        let kept =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("postgresql-{}.tar", version.display()));
        if kept.is_file() {
            let mut unpack = server_program("tar");
            unpack.arg("-C").arg(directory.path()).arg("-x");
            done(unpack.stdin(std::fs::File::open(&kept).unwrap()));
            return Self::serve(directory, data, settings);
        }
        let mut initdb = server_program("initdb");
        initdb.args(["--username=handoffd", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--no-instructions", "--pgdata"]).arg(&data);
        done(&mut initdb);
        // Renamed when it is whole: several tests may be doing the same.
        let aside = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut pack = Command::new("tar");
        pack.arg("-C").arg(directory.path()).arg("-cf").arg(aside.path()).arg("data");
        done(&mut pack);
        aside.persist(&kept).unwrap();
        Self::serve(directory, data, settings)
    }

    /// A standby of this server.
    pub(crate) fn standby(&self) -> Self {
        self.standby_through(self.port)
    }

    /// One that follows it by way of another port.
    pub(crate) fn standby_through(&self, port: u16) -> Self {
        let directory = directory();
        let data = directory.path().join("data");
        let mut copy = server_program("pg_basebackup");
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata"]).arg(&data);
        copy.arg("--dbname").arg(format!("host=127.0.0.1 port={} user=handoffd", self.port));
        done(&mut copy);
        let follows = format!("primary_conninfo=host=127.0.0.1 port={port} user=handoffd");
        Self::serve(directory, data, &[&follows])
    }

    fn serve(directory: tempfile::TempDir, data: PathBuf, settings: &[&str]) -> Self {
        let cluster = Self {
            _directory: directory,
            data,
            port: free_port(),
            server: Mutex::new(None),
            databases: AtomicU32::new(0),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
        };
        cluster.begin();
        cluster
    }

    /// Starts the server, and waits until it answers.
    fn begin(&self) {
        let mut command = server_program("postgres");
        command.arg("-D").arg(&self.data).arg("-p").arg(self.port.to_string());
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "shared_buffers=16MB",
            "max_connections=120",
            "max_wal_senders=3",
            "logging_collector=off",
        ] {
            command.arg("-c").arg(setting);
        }
        // The last one counts.
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // By a thread that lasts as long as the process: the server ends with the thread that started it.
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            tell.send(command.spawn().unwrap()).unwrap();
            loop {
                std::thread::park();
            }
        });
        *self.server.lock().unwrap() = Some(told.recv().unwrap());
        until(|| self.try_psql("postgres", "select 1").is_some());
    }

    /// Ends the server at once, as a crash would, and starts it again.
    pub(crate) fn crash(&self) {
        self.stop("immediate");
        self.begin();
    }

    /// Stops the server as an operator would, and starts it again.
    pub(crate) fn restart(&self) {
        self.stop("fast");
        self.begin();
    }

    /// Ends the server at once, and leaves it so.
    pub(crate) fn fail(&self) {
        self.stop("immediate");
    }

    /// Stops, keeps a copy of everything, and goes on.
    pub(crate) fn back_up(&self) -> Backup {
        self.stop("fast");
        let backup = Backup { directory: directory() };
        copy(&self.data, &backup.data());
        self.begin();
        backup
    }

    /// Puts the copy in the place of what there is.
    pub(crate) fn put_back(&self, backup: &Backup) {
        self.stop("immediate");
        std::fs::remove_dir_all(&self.data).unwrap();
        copy(&backup.data(), &self.data);
        self.begin();
    }

    fn stop(&self, mode: &str) {
        let Some(mut server) = self.server.lock().unwrap().take() else { return };
        let mut stop = server_program("pg_ctl");
        stop.args(["stop", "--mode", mode, "--silent", "--pgdata"]).arg(&self.data);
        let _ = stop.output();
        let _ = server.wait();
    }

    fn try_psql(&self, database: &str, sql: &str) -> Option<String> {
        let mut psql = Command::new(binary("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", "handoffd", "-v", "ON_ERROR_STOP=1"]);
        psql.arg("-p").arg(self.port.to_string()).arg("-d").arg(database).arg("-c").arg(sql);
        let output = psql.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.trim_end().to_owned())
    }

    /// What the server answers to somebody who is not handoffd.
    #[track_caller]
    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        self.try_psql(database, sql).unwrap_or_else(|| panic!("{sql} failed"))
    }

    /// Keeps everybody from a table, until what is returned is dropped.
    #[allow(dead_code, reason = "the bench shares this, and needs no such thing")]
    pub(crate) fn holding(&self, database: &str, table: &str) -> Holding {
        let mut psql = Command::new(binary("psql"));
        psql.args(["-X", "-q", "-h", "127.0.0.1", "-U", "handoffd", "-d", database]);
        psql.arg("-p").arg(self.port.to_string()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut held = Holding(psql.spawn().unwrap());
        let lock = format!("begin; lock table {table} in access exclusive mode;\n");
        held.0.stdin.as_mut().unwrap().write_all(lock.as_bytes()).unwrap();
        let is_held = format!(
            "select count(*) from pg_locks where relation = '{table}'::regclass and mode = 'AccessExclusiveLock' and granted"
        );
        until(|| self.psql(database, &is_held) == "1");
        held
    }

    /// Changes a setting of the whole server.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.psql("postgres", &format!("alter system set {name} = '{value}'"));
        self.psql("postgres", "select pg_reload_conf()");
        until(|| self.psql("postgres", &format!("show {name}")) == value);
    }

    /// A new database.
    pub(crate) fn database(&self) -> String {
        let name = format!("ledger_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("create database {name}"));
        name
    }

    pub(crate) fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    /// The server's first process.
    #[allow(dead_code, reason = "the bench shares this, and needs it")]
    pub(crate) fn pid(&self) -> u32 {
        self.server.lock().unwrap().as_ref().map_or(0, Child::id)
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Has the server talk TLS with a certificate and a key that the test made.
    pub(crate) fn encrypt(&self, certificate: &Path, key: &Path) {
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let mut install = Command::new("install");
            if is_root() {
                install.args(["--owner=postgres", "--group=postgres"]);
            }
            done(install.arg("--mode=600").arg(from).arg(self.data.join(name)));
        }
        self.set("ssl", "on");
    }
}

/// A session that holds a lock.
pub(crate) struct Holding(Child);

impl Drop for Holding {
    fn drop(&mut self) {
        // It ends with what it is told.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

pub(crate) fn url(port: u16, database: &str) -> String {
    format!("postgres://handoffd@127.0.0.1:{port}/{database}")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop("immediate");
    }
}
