//! Random sequences of requests. One seed is one sequence.

use super::request::*;
use super::script::Step;

/// Clients of a sequence.
const CLIENTS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// This many steps in a directory of its own.
pub(super) fn script(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let root = format!("/random{seed}");
    let mut script: Vec<Step> = (0..CLIENTS).map(Step::Open).collect();
    script.push(Step::Ask(0, create(CREATE2, &root, 0)));
    for _ in 0..steps {
        let client = random.below(CLIENTS);
        script.push(match random.below(30) {
            0 => Step::Open(client),
            1 => Step::Ask(client, Request::Close),
            2 => Step::Resume {
                client,
                of: client,
                has_password: true,
            },
            _ => Step::Ask(client, request(&mut random, &root)),
        });
    }
    script
}

fn request(random: &mut Random, root: &str) -> Request {
    match random.below(10) {
        0..=2 => {
            let opcode = random.of(&[EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN2]);
            read(opcode, &path(random, root), random.below(3) > 0)
        }
        3 => {
            let operations = 1 + random.below(4);
            Request::Multi(
                (0..operations)
                    .map(|_| operation(random, root, true))
                    .collect(),
            )
        }
        _ => operation(random, root, false),
    }
}

fn operation(random: &mut Random, root: &str, in_multi: bool) -> Request {
    let version = random.of(&[-1, -1, -1, 0, 1]);
    let path = path(random, root);
    match random.below(if in_multi { 7 } else { 6 }) {
        0..=2 => {
            let flags = random.of(&[0, 1, 2, 3, 4]);
            let opcode = match flags {
                4 => CREATE_CONTAINER,
                _ => random.of(&[CREATE, CREATE2]),
            };
            create(opcode, &path, flags)
        }
        3 | 4 => delete(&path, version),
        5 => set_data(&path, b"data", version),
        _ => check(&path, version),
    }
}

fn path(random: &mut Random, root: &str) -> String {
    let name = random.of(&[
        "a",
        "b",
        "c",
        "a/x",
        "a/y",
        "b/x",
        "a0000000001",
        "c0000000002",
    ]);
    format!("{root}/{name}")
}
