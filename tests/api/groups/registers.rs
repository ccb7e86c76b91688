//! Registers are refused on groups, by a client that has asked no server yet.

use std::time::Duration;

use redlatch::{Error, LockClient, RegisterError, TransactionError};

const GROUP: &str = "redis://127.0.0.1:1/0?failover=true";

fn refusal() -> RegisterError {
    RegisterError::Replicated { url: GROUP.into() }
}

#[test]
fn registers_and_what_is_built_on_them_are_refused_on_groups() {
    let client = LockClient::new(["redis://127.0.0.1:2", GROUP]).unwrap();
    assert_eq!(client.register("leader").unwrap_err(), refusal());
    assert_eq!(client.registers().form(true), Err(refusal()));
    let job = client.once_per("report", Duration::from_secs(60)).exact();
    assert_eq!(
        job.run(|_| Ok::<_, Error>(())),
        Err(Error::Register(refusal()))
    );
    let begun = client.transactions().begin(&["a", "b"]).unwrap_err();
    assert_eq!(begun, TransactionError::Register(refusal()));
    assert_eq!(
        refusal().to_string(),
        format!(
            "{GROUP} is a replicated group, and there are no registers on groups: a failover may \
             forget what a register has chosen"
        )
    );
}
