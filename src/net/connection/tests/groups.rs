//! The connection to the master of a group.

use super::*;
use crate::node::GroupOptions;
use crate::node_url::HostPort;

#[test]
fn a_connection_to_a_master_is_left_for_the_one_that_is_named_in_its_place() {
    let ports = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let [old, new] = ports
        .each_ref()
        .map(|port| port.local_addr().expect("an address"));
    let sentinels = vec![HostPort {
        host: "sentinel.test".to_owned(),
        port: 1,
    }];
    let address = Address::Sentinel {
        sentinels,
        group: "locks".to_owned(),
    };
    let mut options = SessionOptions::new("peer", 7);
    let bound = Duration::from_secs(5);
    let group = GroupOptions {
        tag: Arc::default(),
        bound,
        named_within: bound,
        max_ttl: bound,
        replicas: None,
        skew: Duration::ZERO,
    };
    options.group = Some(Arc::new(group));
    let auth = LookupAuth::default();
    let mut fixture = Fixture::with(
        Endpoint {
            address,
            tls: None,
            auth,
        },
        &options,
    );
    fixture.resolve(vec![old]);
    fixture.run_until(is_connected);
    fixture.resolve(vec![old]);
    let registry = fixture.poll.registry();
    let problem = Err(NodeError::NoMaster("no answer".to_owned()));
    fixture
        .connection
        .resolved(problem, &mut fixture.rounds, registry);
    assert!(
        is_connected(&fixture.connection),
        "it is named, or nobody can say"
    );
    fixture.resolve(vec![new]);
    assert!(fixture.rounds.session(Node::new(0)).is_down());
    fixture.ask();
    fixture.run_until(is_connected);
    assert_eq!(fixture.address(), Some(new));
}
