//! PostgreSQL's own load: one row a transaction, of so many bytes, durable when it is answered.

use std::path::Path;
use std::sync::Arc;

use super::Load;
use super::process::tied;

#[path = "../../tests/postgres/cluster.rs"]
pub(crate) mod cluster;

use cluster::Cluster;

/// A database with one table, and rows of so many bytes for it.
pub(crate) struct Rows {
    cluster: Arc<Cluster>,
    database: String,
    bytes: usize,
}

impl Rows {
    pub(crate) fn new(cluster: Arc<Cluster>, bytes: usize) -> Self {
        let database = cluster.database();
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            assert_eq!(cluster.psql(&database, &format!("show {setting}")), "on", "{setting}");
        }
        cluster.psql(&database, "create table rows (id bigserial primary key, body bytea not null)");
        cluster.psql(&database, "alter table rows alter column body set storage external");
        Self { cluster, database, bytes }
    }

    /// Inserts from so many clients, and reads how long each row took. Connecting comes out of the time that pgbench is
    /// given, so many get more of it.
    pub(crate) fn insert(&self, clients: usize, seconds: f64) -> Load {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("insert.sql");
        let sixteens = self.bytes / 16;
        let insert = format!(
            "insert into rows (body) values (decode(repeat(md5(random()::text), {sixteens}), 'hex'));\n"
        );
        std::io::Write::write_all(&mut std::fs::File::create(&script).unwrap(), insert.as_bytes()).unwrap();
        let given_s = (seconds + clients as f64 / 250.0).ceil();
        let before = self.count();
        let run = tied(cluster::binary("pgbench"))
            .current_dir(directory.path())
            .args(["-n", "-M", "prepared", "--log", "-h", "127.0.0.1", "-U", "handoffd"])
            .args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string()])
            .args(["-T", &given_s.to_string(), "-p", &self.cluster.port.to_string(), "-f"])
            .arg(&script)
            .arg(&self.database)
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let tps = text.lines().find(|line| line.starts_with("tps"));
        let tps: f64 =
            tps.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or_else(|| {
                panic!("no row in {given_s} s: {text}{}", String::from_utf8_lossy(&run.stderr));
            });
        let latencies = latencies(directory.path());
        assert_eq!(self.count() - before, latencies.len(), "every row that was answered is there");
        // Without the time that connecting takes, as for the others.
        Load { elapsed_s: latencies.len() as f64 / tps, latencies }
    }

    fn count(&self) -> usize {
        self.cluster.psql(&self.database, "select count(*) from rows").parse().unwrap()
    }
}

/// The third field of each line of each thread's log, sorted.
fn latencies(directory: &Path) -> Vec<u32> {
    let mut latencies = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("pgbench_log") {
            let text = std::fs::read_to_string(&path).unwrap();
            let third = text.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u32>().ok());
            latencies.extend(third);
        }
    }
    latencies.sort_unstable();
    latencies
}
