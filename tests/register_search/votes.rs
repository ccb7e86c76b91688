//! Searches through the votes of a transaction: sides raise their bytes of the record in place,
//! while others abort it or read it by the library's own changes, on its own scripts. Every command
//! that was ever sent may be carried out at any time, again, or never, and a round ends with the
//! answers of any nodes. What must hold in every state:
//!
//! - Nobody is told that it is committed where another was told that it is aborted, or before all
//!   have voted.
//! - Each majority of the nodes serves a new client, which is told nothing else.
//! - A side that has voted and not finished finds the record of what is committed.

use crate::membership::ask_all;
use crate::round::{Round, Sent};
use crate::server::{Answer, Command, NodeState, Server, epoch};
use crate::told::{Told, Violation};
use crate::voter::{Actor, Goal, Mistake, Phase, of_one_ballot};
use models::explore::{self, Model, Order};
use models::walk::{self, Walker};
use models::{Chance, Change as ScriptChange, budget};
use redlatch_protocol::engine::Token;
use redlatch_registers::script::{COLLECT, RAISE};
use redlatch_registers::transaction::{FINISHED, FORGOTTEN, Record, RecordState, VOTED};
use redlatch_registers::{Change, ChangeStep, Proposer, RegisterCommand, RegisterReply, Replies};

pub(crate) const NODES: usize = 3;
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin(usize),
    /// A node carries out the command of an actor's round.
    Arrive(usize, usize),
    /// A node carries out a command of which nobody waits for the answer.
    Again(Command, usize),
    /// An actor ends its round with the answers of these nodes, as bits.
    Hear(usize, u8),
}

/// What sides do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Vote,
    /// They vote, and finish when they know of the commit.
    VoteAndFinish,
    /// They finish: all have voted.
    Finish,
}

#[derive(Clone)]
pub(crate) struct World {
    nodes: [NodeState; NODES],
    actors: Vec<Actor>,
    digests: Vec<u64>,
    rounds: Vec<Option<Round>>,
    sent: Sent,
    /// Of each side, what the nodes have answered it that it has finished.
    finished: Vec<[Option<Answer>; NODES]>,
    told: Told,
}

pub(crate) struct Search<'a> {
    pub(crate) mistake: Mistake,
    pub(crate) sides: usize,
    /// Those that are not sides.
    others: &'a [Goal],
    pub(crate) stage: Stage,
    /// How many rounds each takes at most.
    pub(crate) rounds: u8,
    pub(crate) server: Server,
    pub(crate) creator: Proposer,
    pub(crate) created: Command,
    /// The command by which each side finishes.
    finishing: Vec<Command>,
    /// The steps of the last walk.
    trace: Vec<Step>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(mistake: Mistake, sides: usize, others: &'a [Goal], rounds: u8) -> Self {
        let change = |from, to| {
            vec![ScriptChange {
                scripts: &[RAISE],
                from,
                to,
            }]
        };
        let mut server = Server::new(&match mistake {
            Mistake::RaisedBelowPromise => change(" or promise ~= follows", ""),
            Mistake::NoFloor => vec![ScriptChange {
                scripts: &[RAISE, COLLECT],
                from: "if least > floor() then",
                to: "if false then",
            }],
            _ => Vec::new(),
        });
        let mut proposer = Proposer::new(Token::new([b'0'; Token::LEN]));
        proposer.enter(&epoch(NODES).group);
        let mut create = Change::create(proposer);
        let ChangeStep::Draft(mut draft) = create.poll() else {
            unreachable!("a draft")
        };
        let record = Record::begin(&NAMES[..sides], 0).expect("there can be these");
        draft.put(record.to_bytes().into(), None);
        create.propose(draft);
        let ChangeStep::Send(command) = create.poll() else {
            unreachable!("an accept")
        };
        create.handle(&Replies(vec![Some(RegisterReply::Done); NODES]));
        let created = command_of(&mut server, &command);
        let creator = create.into_proposer();
        let finish = |name: &&str| {
            let levels = record.raised(&[name], FINISHED).expect("it takes part");
            command_of(&mut server, &RegisterCommand::Raise(levels))
        };
        let finishing = NAMES[..sides].iter().map(finish).collect();
        Self {
            mistake,
            sides,
            others,
            stage: Stage::Vote,
            rounds,
            server,
            creator,
            created,
            finishing,
            trace: Vec::new(),
        }
    }

    pub(crate) fn record(&self) -> Record {
        Record::begin(&NAMES[..self.sides], 0).expect("there can be these")
    }

    fn send(&mut self, world: &mut World, actor: usize, command: &RegisterCommand) {
        let number = command_of(&mut self.server, command);
        if !matches!(command, RegisterCommand::Read { .. }) {
            world.sent.send(number, (1 << NODES) - 1);
        }
        let left = &mut world.actors[actor].rounds_left;
        if *left > 0 {
            *left -= 1;
            let asked = vec![Some(number); NODES];
            world.rounds[actor] = Some(Round {
                asked,
                ..Round::new(NODES)
            });
        }
    }

    /// An actor goes on, or has come to an end.
    fn act(
        &mut self,
        world: &mut World,
        actor: usize,
        next: Result<Option<RecordState>, RegisterCommand>,
    ) -> Result<(), Violation> {
        match next {
            Err(command) => self.send(world, actor, &command),
            Ok(told) => {
                let it = &mut world.actors[actor];
                it.phase = Phase::Idle;
                let knows = world.told.note(actor, it.goal, told);
                if knows && self.stage == Stage::VoteAndFinish {
                    it.goal = Goal::Finish;
                    let command = it.begin(self).expect("it raises");
                    self.send(world, actor, &command);
                }
            }
        }
        world.digests[actor] = explore::hash(&format!("{:?}", world.actors[actor]));
        world.told.check()
    }

    /// A node carries out a command, perhaps for the first time.
    fn carry_out(&mut self, world: &mut World, command: Command, node: usize) -> Answer {
        let (state, answer) = self.server.run(world.nodes[node], command);
        let has_keys = |state| !self.server.names(state).is_empty();
        world.told.is_removed |= has_keys(world.nodes[node]) && !has_keys(state);
        world.nodes[node] = state;
        let side = self
            .finishing
            .iter()
            .position(|finishing| *finishing == command);
        let Some(finished) = side.map(|side| &mut world.finished[side]) else {
            return answer;
        };
        if finished[node].is_none() {
            finished[node] = Some(answer);
            let replies = finished.iter().flatten();
            let replies = replies.map(|it| Some(self.server.reply(*it).clone()));
            let replies = Replies(replies.collect());
            self.forget(world, &replies);
        }
        answer
    }

    /// What follows when a side has finished on these nodes.
    fn forget(&mut self, world: &mut World, replies: &Replies) {
        let needed = match self.mistake {
            Mistake::ForgottenAtMajority => NODES / 2 + 1,
            _ => NODES,
        };
        let is_granted = |it: &Option<RegisterReply>| matches!(it, Some(RegisterReply::State(_)));
        if replies.0.len() != needed || !replies.0.iter().all(is_granted) {
            return;
        }
        let forgotten = match self.mistake {
            Mistake::ForgottenByFirst => Some([FORGOTTEN].repeat(self.sides).into()),
            Mistake::ForgottenInTwoBallots => {
                let mut replies = replies.clone();
                of_one_ballot(&mut replies);
                replies.forgotten(self.sides)
            }
            _ => replies.forgotten(self.sides),
        };
        if let Some(levels) = forgotten {
            let number = command_of(&mut self.server, &RegisterCommand::Raise(levels));
            world.sent.send(number, (1 << NODES) - 1);
        }
    }

    /// A new client aborts or reads it, alone and on these nodes only.
    fn end(&mut self, world: &World, mask: u8, goal: Goal) -> Result<(), Violation> {
        let mut nodes = world.nodes;
        let index = world.actors.len();
        let mut client = Actor::new(self, index, goal);
        client.rounds_left = 12;
        let mut next = Err(client.begin(self).expect("it asks the nodes"));
        while let Err(command) = next {
            client.rounds_left -= 1;
            if client.rounds_left == 0 {
                return Err(Violation::Stuck);
            }
            let number = command_of(&mut self.server, &command);
            let mut replies = vec![None; NODES];
            for node in (0..NODES).filter(|node| mask >> node & 1 == 1) {
                let (state, answer) = self.server.run(nodes[node], number);
                nodes[node] = state;
                replies[node] = Some(self.server.reply(answer).clone());
            }
            next = client.hear(self, Replies(replies));
        }
        let told = next.expect("it has ended");
        world
            .told
            .judge(&world.actors, (goal, index % self.sides), told)
    }
}

fn command_of(server: &mut Server, command: &RegisterCommand) -> Command {
    let mut ask = ask_all(1, 0, &epoch(NODES).group, command);
    server.command(ask.remove(0).1.expect("a command"))
}

impl Model for Search<'_> {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    /// A majority has the record, and another node may get it late.
    fn first(&mut self) -> World {
        let node = self.server.formed(0, NODES);
        let (mut created, _) = self.server.run(node, self.created);
        let is_voted = self.stage == Stage::Finish;
        let goal = if is_voted { Goal::Finish } else { Goal::Vote };
        if is_voted {
            let all = RegisterCommand::Raise([VOTED].repeat(self.sides).into());
            let all = command_of(&mut self.server, &all);
            created = self.server.run(created, all).0;
        }
        let goals = std::iter::repeat_n(goal, self.sides).chain(self.others.iter().copied());
        let actors: Vec<Actor> = goals
            .enumerate()
            .map(|(index, goal)| Actor::new(self, index, goal))
            .collect();
        let mut sent = Sent::default();
        sent.send(self.created, (1 << NODES) - 1);
        World {
            nodes: [created, created, node],
            digests: vec![0; actors.len()],
            rounds: vec![None; actors.len()],
            actors,
            sent,
            finished: vec![[None; NODES]; self.sides],
            told: Told::new(self.sides, is_voted),
        }
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in 0..NODES {
            for command in world.sent.to(node) {
                let is_awaited = world
                    .rounds
                    .iter()
                    .flatten()
                    .any(|it| it.awaits(command, node));
                let is_first = |side: usize| {
                    self.finishing[side] == command && world.finished[side][node].is_none()
                };
                let is_first = (0..self.sides).any(is_first);
                let mut matters = || {
                    is_first || self.server.run(world.nodes[node], command).0 != world.nodes[node]
                };
                if !is_awaited && matters() {
                    steps.push(Step::Again(command, node));
                }
            }
        }
        for (actor, round) in world.rounds.iter().enumerate() {
            let Some(round) = round else {
                if world.digests[actor] == 0 {
                    steps.push(Step::Begin(actor));
                }
                continue;
            };
            let answered = round.answered();
            let heard = (0..=answered).filter(|it| it & !answered == 0 && it.count_ones() > 1);
            steps.extend(heard.map(|heard| Step::Hear(actor, heard)));
            steps.extend(round.unanswered().map(|node| Step::Arrive(actor, node)));
        }
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), Violation> {
        match *step {
            Step::Begin(actor) => {
                world
                    .told
                    .has_voted
                    .iter_mut()
                    .skip(actor)
                    .take(1)
                    .for_each(|voted| *voted = true);
                let mut it = world.actors[actor].clone();
                let command = it.begin(self).expect("it asks the nodes");
                world.actors[actor] = it;
                self.act(world, actor, Err(command))
            }
            Step::Arrive(actor, node) => {
                let asked = world.rounds[actor].as_ref().expect("a round").asked[node];
                let answer = self.carry_out(world, asked.expect("it was asked"), node);
                let round = world.rounds[actor].as_mut().expect("a round");
                round.answers[node] = Some(answer);
                Ok(())
            }
            Step::Again(command, node) => {
                self.carry_out(world, command, node);
                Ok(())
            }
            Step::Hear(actor, heard) => {
                let round = world.rounds[actor].take().expect("a round");
                let answers = round.answers.iter().enumerate();
                let heard = answers.map(|(node, it)| it.filter(|_| heard >> node & 1 == 1));
                let replies = heard.map(|it| it.map(|answer| self.server.reply(answer).clone()));
                let replies = Replies(replies.collect());
                let mut it = world.actors[actor].clone();
                let next = it.hear(self, replies);
                world.actors[actor] = it;
                self.act(world, actor, next)
            }
        }
    }

    /// Does not tell which node is which.
    fn key(&self, world: &World) -> u64 {
        let column = |node: usize| {
            let rounds = world.rounds.iter();
            let rounds = rounds.map(|it| it.as_ref().map(|it| (it.asked[node], it.answers[node])));
            let finished: Vec<_> = world.finished.iter().map(|it| it[node]).collect();
            (world.nodes[node], rounds.collect::<Vec<_>>(), finished)
        };
        let mut columns: Vec<_> = (0..NODES).map(column).collect();
        columns.sort();
        let World {
            sent,
            digests,
            told,
            ..
        } = world;
        explore::hash(&(columns, sent, digests, told))
    }

    fn check(&mut self, world: &World, _: &[Step], _: usize) -> Result<(), Violation> {
        [0b011, 0b101, 0b110].into_iter().try_for_each(|mask| {
            self.end(world, mask, Goal::Abort)?;
            self.end(world, mask, Goal::Read)
        })
    }
}

/// Takes random steps until something is wrong.
impl Walker for Search<'_> {
    type Violation = Violation;
    /// The number of walks.
    type Totals = u64;

    fn walk(&mut self, random: &mut Chance, walks: &mut u64) -> Result<(), Violation> {
        *walks += 1;
        self.trace.clear();
        let mut world = self.first();
        for number in 1..=60 {
            let steps = self.steps(&world);
            if steps.is_empty() {
                break;
            }
            let step = random.pick(&steps);
            self.trace.push(step);
            self.take(&mut world, &step)?;
            // That takes as long as many steps.
            if number % 6 == 0 {
                self.check(&world, &[], 0)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, what: &Violation) -> String {
        let trace = std::mem::take(&mut self.trace);
        explore::story(self, what, &trace)
    }
}

/// How many states of each plan plain `cargo test` searches.
const STATES: u64 = 625;

#[test]
fn votes_have_one_decision_in_all_schedules() {
    use Goal::{Abort, Read};
    use Stage::{Finish, Vote, VoteAndFinish};
    for (name, sides, others, stage, rounds) in [
        ("two sides vote in one round", 2, &[][..], Vote, 1),
        ("two sides finish in one round", 2, &[], Finish, 1),
        (
            "two sides vote in one round, one aborts in two",
            2,
            &[Abort],
            Vote,
            2,
        ),
        (
            "two sides finish in one round, one aborts in two",
            2,
            &[Abort],
            Finish,
            2,
        ),
        ("two sides vote", 2, &[], Vote, 4),
        ("two sides vote, one reads", 2, &[Read], Vote, 3),
        ("two sides vote, one aborts", 2, &[Abort], Vote, 3),
        ("two sides vote, two abort", 2, &[Abort, Abort], Vote, 3),
        ("three sides vote, one aborts", 3, &[Abort], Vote, 3),
        ("two sides vote and finish", 2, &[], VoteAndFinish, 2),
        (
            "two sides vote and finish, one aborts",
            2,
            &[Abort],
            VoteAndFinish,
            3,
        ),
        ("two sides finish, one aborts", 2, &[Abort], Finish, 3),
        ("three sides finish", 3, &[], Finish, 2),
    ] {
        let mut plan = Search {
            stage,
            ..Search::new(Mistake::None, sides, others, rounds)
        };
        let most = budget("REDLATCH_STATES", STATES) as usize;
        explore::sound(name, &mut plan, most, Order::Depth);
    }
}

#[test]
fn each_mistake_about_votes_is_found() {
    use Stage::{Finish, Vote};
    for (mistake, stage) in [
        (Mistake::RaisedBelowPromise, Vote),
        (Mistake::CountedOnce, Vote),
        (Mistake::VotesIgnored, Vote),
        (Mistake::VotesOfOneNode, Vote),
        (Mistake::AbortedFromMemory, Vote),
        (Mistake::ForgottenByFirst, Finish),
        (Mistake::ForgottenAtMajority, Finish),
        (Mistake::ForgottenInTwoBallots, Finish),
        (Mistake::NoFloor, Finish),
    ] {
        let mut plan = Search {
            stage,
            ..Search::new(mistake, 2, &[Goal::Abort], 3)
        };
        let found = walk::broken(&mistake, 0, &mut plan);
        assert_ne!(found, Violation::Stuck, "{mistake:?}");
    }
}
