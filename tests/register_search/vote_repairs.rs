//! Random walks through the votes of a transaction while nodes lose what they have kept, or come
//! back with an older state, and are refilled in further epochs. Each majority of the nodes that
//! have votes must tell what `votes.rs` says.

use crate::membership::{Ask, ask_all};
use crate::mistake::Mistake as RepairMistake;
use crate::repairer::Repairer;
use crate::round::{Round, Sent};
use crate::server::{Answer, Asked, Command, LIST, NodeState, epoch};
use crate::told::{Told, Violation};
use crate::voter::{Actor, Goal, Mistake, Phase};
use crate::votes::{Search, Stage};
use models::Chance;
use models::walk::{self, Walker};
use redlatch_registers::transaction::{FINISHED, RecordState, VOTED};
use redlatch_registers::{
    Group, MarkStep, MembershipView, RegisterCommand, RegisterReply, Replies,
};
use std::collections::BTreeMap;
use std::fmt;

/// How many rounds a client takes at most.
const ROUNDS: u8 = 14;

/// How many calls a repairer begins.
const REPAIRS_MAX: u8 = 8;

const SIDES: usize = 2;

/// The register of the record, as nodes name it.
const RECORD: &[u8] = b"a";

struct World {
    nodes: Vec<NodeState>,
    /// The states that each node had.
    older: Vec<Vec<NodeState>>,
    actors: Vec<Actor>,
    repairers: Vec<Repairer>,
    /// Those of the actors, and of the repairers.
    rounds: Vec<Option<Round>>,
    sent: Sent,
    /// What the nodes have answered to each command by which a side finishes.
    finished: BTreeMap<Command, Vec<Option<Answer>>>,
    told: Told,
    losses_left: usize,
    is_lost: bool,
    /// The client that is stopped from the first loss until a node was refilled, perhaps.
    stopped: usize,
}

struct Walk<'a> {
    search: Search<'a>,
    mistake: Option<RepairMistake>,
    /// How many nodes there are.
    count: usize,
}

impl Walk<'_> {
    fn all(&self) -> u8 {
        ((1_u16 << self.count) - 1) as u8
    }

    /// A majority has the record, and the others may get it late.
    fn first(&mut self, others: &[Goal], losses: usize, repairers: usize) -> World {
        let count = self.count;
        let is_voted = self.search.stage == Stage::Finish;
        let server = &mut self.search.server;
        let mut nodes: Vec<_> = (0..count).map(|node| server.formed(node, count)).collect();
        let mut sent = Sent::default();
        sent.send(self.search.created, self.all());
        let all = RegisterCommand::Raise([VOTED].repeat(SIDES).into());
        let all = self.number(&epoch(count).group, &all);
        for node in &mut nodes[..=count / 2] {
            *node = self.search.server.run(*node, self.search.created).0;
            if is_voted {
                *node = self.search.server.run(*node, all).0;
            }
        }
        let goal = if is_voted { Goal::Finish } else { Goal::Vote };
        let goals = std::iter::repeat_n(goal, SIDES).chain(others.iter().copied());
        let actors: Vec<Actor> = goals
            .enumerate()
            .map(|(index, goal)| Actor::new(&self.search, index, goal))
            .collect();
        World {
            older: nodes.iter().map(|node| vec![*node]).collect(),
            nodes,
            rounds: vec![None; actors.len() + repairers],
            actors,
            repairers: (0..repairers)
                .map(|index| Repairer::new(index, count))
                .collect(),
            sent,
            finished: BTreeMap::new(),
            told: Told::new(SIDES, is_voted),
            losses_left: losses,
            is_lost: false,
            stopped: usize::MAX,
        }
    }

    fn number(&mut self, group: &Group, command: &RegisterCommand) -> Command {
        let asked = ask_all(1, 0, group, command)
            .remove(0)
            .1
            .expect("a command");
        self.search.server.command(asked)
    }

    fn ask(&mut self, world: &mut World, actor: usize, ask: Ask) {
        let mut round = Round::new(self.count);
        for (node, asked) in ask {
            let is_mark = |it: &Asked| matches!(it.command, RegisterCommand::Mark(_));
            round.is_whole |= asked.as_ref().is_some_and(is_mark);
            let command = asked.map_or(LIST, |asked| self.search.server.command(asked));
            round.asked[node] = Some(command);
            if command != LIST && self.changes(command) {
                world.sent.send(command, 1 << node);
            }
        }
        world.rounds[actor] = Some(round);
    }

    /// May it arrive late, or again, and change anything?
    fn changes(&self, command: Command) -> bool {
        use RegisterCommand::{Copy, Mark, Read};
        let command = &self.search.server.asked(command).command;
        !matches!(command, Read { .. } | Copy | Mark(MarkStep::Look))
    }

    fn carry_out(&mut self, world: &mut World, command: Command, node: usize) -> Answer {
        let before = world.nodes[node];
        let (state, answer) = self.search.server.run(before, command);
        world.nodes[node] = state;
        if command == LIST {
            return answer;
        }
        if state != before {
            world.older[node].push(state);
        }
        let asked = self.search.server.asked(command).clone();
        let RegisterCommand::Raise(levels) = &asked.command else {
            return answer;
        };
        let has_keys = |it| {
            self.search
                .server
                .names(it)
                .iter()
                .any(|name| **name == *RECORD)
        };
        world.told.is_removed |= has_keys(before) && !has_keys(state);
        let first = vec![None; self.count];
        let finished = world.finished.entry(command).or_insert(first);
        if !levels.contains(&FINISHED) || finished[node].is_some() {
            return answer;
        }
        finished[node] = Some(answer);
        let reply = |it: &Option<Answer>| it.map(|it| self.search.server.reply(it).clone());
        let replies = Replies(finished.iter().map(reply).collect());
        let is_granted = |it: &Option<RegisterReply>| matches!(it, Some(RegisterReply::State(_)));
        if let (true, Some(levels)) = (replies.0.iter().all(is_granted), replies.forgotten(SIDES)) {
            let command = RegisterCommand::Raise(levels);
            let command = self.search.server.command(Asked { command, ..asked });
            world.sent.send(command, self.all());
        }
        answer
    }

    fn view(&self, world: &World) -> Option<MembershipView> {
        let nodes = world.nodes.iter().enumerate();
        let seen = nodes
            .map(|(index, node)| self.search.server.look(index, *node))
            .collect();
        MembershipView::new(seen, self.count).ok()
    }

    fn hear(&mut self, world: &mut World, index: usize, heard: u8) -> Result<(), Violation> {
        let round = world.rounds[index].take().expect("a round");
        let heard = |node: usize| round.answers[node].filter(|_| heard >> node & 1 == 1);
        let places = 0..self.count;
        let listed = places
            .clone()
            .find(|node| round.asked[*node] == Some(LIST))
            .map(heard);
        let reply = |it| self.search.server.reply(it).clone();
        let replies = places.map(|node| heard(node).filter(|_| listed.is_none()).map(reply));
        let replies = Replies(replies.collect());
        if let Some(repairer) = index.checked_sub(world.actors.len()) {
            let names = listed
                .flatten()
                .map(|state| self.search.server.names(state));
            if let Ok(ask) = world.repairers[repairer].hear(&replies, names, self.mistake) {
                self.ask(world, index, ask);
            }
            return Ok(());
        }
        let view = self.view(world);
        let actor = &mut world.actors[index];
        let next = match view.filter(|_| !replies.are_enough() && replies.lack_votes()) {
            Some(view) => actor.enter(&self.search, &view.epoch().group),
            None => actor.hear(&self.search, replies),
        };
        self.act(world, index, next)
    }

    fn act(
        &mut self,
        world: &mut World,
        index: usize,
        mut next: Result<Option<RecordState>, RegisterCommand>,
    ) -> Result<(), Violation> {
        let actor = &mut world.actors[index];
        if let Ok(told) = next {
            actor.phase = Phase::Idle;
            if world.told.note(index, actor.goal, told) {
                actor.goal = Goal::Finish;
                next = Err(actor.begin(&self.search).expect("it raises"));
            }
        }
        if let (Err(command), 1..) = (next, actor.rounds_left) {
            actor.rounds_left -= 1;
            let ask = ask_all(self.count, 0, &actor.group, &command);
            self.ask(world, index, ask);
        }
        world.told.check()
    }

    fn step(&mut self, world: &mut World, random: &mut Chance) -> Result<(), Violation> {
        let clients = world.actors.len();
        let all = world.rounds.len();
        let node = random.below(self.count);
        if random.one_in(12) {
            let command = random.pick(&world.sent.to(node).collect::<Vec<_>>());
            if !world
                .rounds
                .iter()
                .flatten()
                .any(|it| it.awaits(command, node))
            {
                self.carry_out(world, command, node);
            }
            return Ok(());
        }
        if world.losses_left > 0 && random.one_in(20) {
            let now = world.nodes[node];
            let older = random.pick(&world.older[node]);
            (world.losses_left, world.is_lost) = (world.losses_left - 1, true);
            world.nodes[node] = match random.one_in(2) {
                true => self.search.server.emptied(now),
                false => self.search.server.restarted(now, older),
            };
            return Ok(());
        }
        let index = match world.is_lost && random.one_in(2) {
            true => clients + random.below(all - clients),
            false => random.below(all),
        };
        let is_refilled = world.repairers.iter().any(|it| it.entered > 0);
        if index == world.stopped && world.is_lost && !is_refilled {
            return Ok(());
        }
        let Some(round) = &world.rounds[index] else {
            return self.begin(world, index, random);
        };
        let waiting: Vec<usize> = round.unanswered().collect();
        if waiting.is_empty() || round.is_decided() && random.one_in(3) {
            let loses = index < clients && random.one_in(8);
            let heard = if loses {
                random.number() as u8
            } else {
                u8::MAX
            };
            let heard = round.answered() & heard;
            return self.hear(world, index, heard);
        }
        let node = random.pick(&waiting);
        let answer = self.carry_out(world, round.asked[node].expect("it was asked"), node);
        world.rounds[index].as_mut().expect("a round").answers[node] = Some(answer);
        Ok(())
    }

    fn begin(
        &mut self,
        world: &mut World,
        index: usize,
        random: &mut Chance,
    ) -> Result<(), Violation> {
        if let Some(repairer) = index.checked_sub(world.actors.len()) {
            let repairer = &mut world.repairers[repairer];
            if world.is_lost && repairer.is_idle() && repairer.begun < REPAIRS_MAX {
                let ask = repairer.begin();
                self.ask(world, index, ask);
            }
            return Ok(());
        }
        let actor = &mut world.actors[index];
        if actor.has_begun || !random.one_in(4) {
            return Ok(());
        }
        world
            .told
            .has_voted
            .iter_mut()
            .skip(index)
            .take(1)
            .for_each(|voted| *voted = true);
        let command = actor.begin(&self.search).expect("it asks the nodes");
        self.act(world, index, Err(command))
    }

    /// Each majority of the nodes that have votes serves a new client.
    fn check(&mut self, world: &World) -> Result<(), Violation> {
        let Some(view) = self.view(world) else {
            return Ok(());
        };
        let voters = view
            .voters(view.epoch())
            .iter()
            .fold(0, |bits, it| bits | 1 << it.index());
        let majority = self.count / 2 + 1;
        let majorities = (0..=self.all())
            .filter(|nodes| nodes.count_ones() as usize == majority && nodes & !voters == 0);
        for nodes in majorities {
            self.end(world, nodes, &view.epoch().group, Goal::Abort)?;
            self.end(world, nodes, &view.epoch().group, Goal::Read)?;
        }
        Ok(())
    }

    /// A new client aborts or reads it, alone and on these nodes only.
    fn end(&mut self, world: &World, mask: u8, group: &Group, goal: Goal) -> Result<(), Violation> {
        let mut nodes = world.nodes.clone();
        let index = world.actors.len();
        let mut client = Actor::new(&self.search, index, goal);
        let mut next = client.enter(&self.search, group);
        while let Err(command) = next {
            if client.rounds_left == 0 {
                return Err(Violation::Stuck);
            }
            client.rounds_left -= 1;
            let command = self.number(group, &command);
            let mut replies = vec![None; self.count];
            for node in (0..self.count).filter(|node| mask >> node & 1 == 1) {
                let (state, answer) = self.search.server.run(nodes[node], command);
                nodes[node] = state;
                replies[node] = Some(self.search.server.reply(answer).clone());
            }
            next = client.hear(&self.search, Replies(replies));
        }
        world.told.judge(
            &world.actors,
            (goal, index % SIDES),
            next.expect("it has ended"),
        )
    }

    /// Takes random steps until something is wrong. Returns how many nodes were given a vote.
    fn go(&mut self, mut world: World, random: &mut Chance) -> Result<u64, Violation> {
        world.stopped = random.below(2 * SIDES);
        for number in 1..=400 {
            self.step(&mut world, random)?;
            if number % 40 == 0 {
                self.check(&world)?;
            }
        }
        Ok(world.repairers.iter().map(|it| it.entered).sum())
    }
}

/// Walks on three and five nodes.
struct Walks {
    /// What is walked again and again if a rule is left out.
    mistake: Option<RepairMistake>,
    of_three: Walk<'static>,
    of_five: Walk<'static>,
}

impl Walks {
    fn new(mistake: Option<RepairMistake>) -> Self {
        let walk = |count| Walk {
            search: Search::new(Mistake::None, SIDES, &[], ROUNDS),
            mistake,
            count,
        };
        Self {
            mistake,
            of_three: walk(3),
            of_five: walk(5),
        }
    }
}

/// The number of walks, and of nodes that were given a vote.
#[derive(Debug, Default)]
struct Totals {
    walks: u64,
    repairs: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} walks, {} repairs", self.walks, self.repairs)
    }
}

impl Walker for Walks {
    type Violation = Violation;
    type Totals = Totals;

    fn walk(&mut self, random: &mut Chance, totals: &mut Totals) -> Result<(), Violation> {
        use Goal::{Abort, Read};
        totals.walks += 1;
        if self.mistake.is_some() {
            let world = self.of_three.first(&[Abort], 1, 1);
            totals.repairs += self.of_three.go(world, random)?;
            return Ok(());
        }
        let walk = match random.one_in(3) {
            true => &mut self.of_five,
            false => &mut self.of_three,
        };
        walk.search.stage = if random.one_in(3) {
            Stage::Finish
        } else {
            Stage::Vote
        };
        let others: [&[Goal]; 5] = [&[], &[Abort], &[Abort, Read], &[Read], &[Abort, Abort]];
        let world = walk.first(random.pick(&others), random.below(5), 1 + random.below(2));
        totals.repairs += walk.go(world, random)?;
        Ok(())
    }

    /// Its steps are not kept: the seed has to do.
    fn tell(&mut self, _what: &Violation) -> String {
        String::new()
    }
}

#[test]
fn votes_are_kept_while_nodes_are_refilled() {
    let Totals { walks, repairs } = walk::sound("refilled votes", 50, &mut Walks::new(None));
    assert!(
        repairs > walks / 8,
        "walks with few repairs prove little: {repairs}"
    );
}

#[test]
fn a_refill_that_loses_votes_is_found() {
    for mistake in [
        RepairMistake::CopiedFromOne,
        RepairMistake::RefillKeepsEpoch,
    ] {
        let found = walk::broken(&mistake, 0, &mut Walks::new(Some(mistake)));
        assert_ne!(found, Violation::Stuck, "{mistake:?}");
    }
}
