//! What one replica has answered for is known to all others, to whoever asks for it by its name.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value as Json, json};

use crate::cluster::Cluster;
use crate::replicas::{Replica, fleet};
use crate::specs::plain;
use crate::wire::Request;

fn rpc(replica: &Replica, method: &str, id: &str) -> Json {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": id}}).to_string();
    let request = Request::new("POST", "/rpc").token(&replica.admin).json(&body);
    replica.connection().ask(&request).unwrap().json()
}

/// The first line of an answer that does not end.
fn begins(replica: &Replica, target: &str) -> String {
    let mut stream = TcpStream::connect(replica.address).unwrap();
    stream.write_all(&Request::new("GET", target).token(&replica.admin).bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn what_one_replica_answered_for_is_found_at_every_other_one_at_once() {
    let cluster = Cluster::shared();
    let fleet = fleet(&cluster.url(&cluster.database()), 3);
    let mut elsewhere: Vec<_> = fleet.iter().map(Replica::connection).collect();
    for n in 0..40 {
        let spec = plain(&format!("asked{n:03}"));
        let id = spec["handoffId"].as_str().unwrap();
        assert_eq!(fleet[n % 3].post("/v1/handoffs", &spec).status, 201);
        let other = (n + 1) % 3;
        match n % 4 {
            0 => {
                let found = rpc(&fleet[other], "tasks/get", id);
                assert_eq!(found["result"]["id"], id, "{found}");
            }
            1 => {
                assert_eq!(begins(&fleet[other], &format!("/v1/handoffs/{id}/stream")), "HTTP/1.1 200 OK");
            }
            _ => {
                let target = format!("/v1/handoffs/{id}");
                let request = Request::new("GET", &target).token(&fleet[other].admin);
                let found = elsewhere[other].ask(&request).unwrap();
                assert_eq!(found.status, 200, "{found:?}");
            }
        }
    }
    // An entry, by its number, at whoever did not write it.
    let last = fleet.iter().map(Replica::head).max().unwrap();
    for replica in &fleet {
        assert_eq!(replica.get(&format!("/v1/audit/{last}")).unwrap().status, 200);
        assert_eq!(replica.get(&format!("/v1/audit/{}", last + 1)).unwrap().status, 404);
    }
}

#[test]
fn what_is_nowhere_is_not_there_unless_nobody_can_know() {
    let cluster = Cluster::start();
    let fleet = fleet(&cluster.url(&cluster.database()), 1);
    let replica = &fleet[0];
    assert_eq!(replica.post("/v1/handoffs", &plain("known000")).status, 201);
    let strange = |n: usize| replica.get(&format!("/v1/handoffs/hs_20260218_strange{n}")).unwrap();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8)
            .map(|n| scope.spawn(move || (0..8).map(|m| strange(8 * n + m).status).collect::<Vec<_>>()))
            .collect();
        for one in asking {
            assert_eq!(one.join().unwrap(), [404; 8]);
        }
    });
    cluster.fail();
    // A page is what is known here; of what is not, it is not said that there is none.
    assert_eq!(replica.json("/v1/handoffs")["handoffs"].as_array().unwrap().len(), 1);
    let unknown = strange(1);
    assert_eq!((unknown.status, unknown.code().as_str()), (503, "VIEWS_UNAVAILABLE"), "{unknown:?}");
    assert_eq!(rpc(replica, "tasks/get", "hs_20260218_strange1")["error"]["code"], -32603);
    cluster.restart();
    crate::cluster::until(|| strange(1).status == 404);
}
