//! Threads of which one runs at a time: which one, a seed decides, wherever they let it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use super::random::Random;
use std::sync::{Arc, Condvar, Mutex};

#[derive(Debug)]
struct State {
    dice: Random,
    /// Whose turn it is.
    current: usize,
    /// Those that are done, in the order in which they were.
    ended: Vec<usize>,
    /// How often a turn has passed on.
    switches: usize,
}

/// Who may run.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
    /// One for each thread: who has no turn sleeps on.
    comes: Vec<Condvar>,
    /// One of so many chances to pass the turn on is taken.
    one_in: usize,
}

impl Turns {
    /// For so many threads.
    pub fn new(seed: u64, count: usize, one_in: usize) -> Arc<Self> {
        let mut dice = Random(seed);
        let current = dice.below(count);
        Arc::new(Self {
            state: Mutex::new(State {
                dice,
                current,
                ended: Vec::new(),
                switches: 0,
            }),
            comes: (0..count).map(|_| Condvar::new()).collect(),
            one_in,
        })
    }

    /// What one of the threads does, from its first turn to its last.
    pub fn run<T>(&self, number: usize, work: impl FnOnce() -> T) -> T {
        struct End<'a>(&'a Turns, usize);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock().unwrap();
                state.ended.push(self.1);
                self.0.pass_on(&mut state, Some(self.1));
            }
        }
        let _end = End(self, number);
        self.wait_for(number);
        work()
    }

    fn wait_for(&self, number: usize) {
        let state = self.state.lock().unwrap();
        let others = |state: &mut State| state.current != number;
        drop(self.comes[number].wait_while(state, others).unwrap());
    }

    /// Somebody's turn, not that of `but` if there is anybody else.
    fn pass_on(&self, state: &mut State, but: Option<usize>) {
        let able = (0..self.comes.len()).filter(|i| !state.ended.contains(i));
        let able: Vec<usize> = able.collect();
        let others: Vec<usize> = able.iter().copied().filter(|i| Some(*i) != but).collect();
        let able = if others.is_empty() { able } else { others };
        if !able.is_empty() {
            let next = able[state.dice.below(able.len())];
            if next != state.current {
                state.switches += 1;
                state.current = next;
                self.comes[next].notify_all();
            }
        }
    }

    /// Maybe others run, before this one goes on. On whatever thread it is: what it gives to threads
    /// of its own, it waits for.
    pub fn step(&self, number: usize) {
        let mut state = self.state.lock().unwrap();
        if state.dice.below(self.one_in) == 0 {
            self.pass_on(&mut state, None);
        }
        drop(state);
        self.wait_for(number);
    }

    /// Others run, as long as this one has to wait for something that they do.
    pub fn wait_until(&self, number: usize, is_so: impl Fn() -> bool) {
        for _ in 0..1_000_000 {
            if is_so() {
                return;
            }
            self.pass_on(&mut self.state.lock().unwrap(), Some(number));
            self.wait_for(number);
        }
        panic!("what is waited for never comes");
    }

    /// A number below `end`.
    pub fn dice(&self, end: usize) -> usize {
        self.state.lock().unwrap().dice.below(end)
    }

    /// How often a turn has passed from one to another.
    pub fn switches(&self) -> usize {
        self.state.lock().unwrap().switches
    }

    /// Those that are done, in the order in which they were.
    pub fn ended(&self) -> Vec<usize> {
        self.state.lock().unwrap().ended.clone()
    }
}
