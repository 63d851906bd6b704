//! Threads of which one runs at a time: which one, a seed decides, wherever they let it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use super::random::Random;
use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex};

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct State {
    dice: Random,
    /// Whose turn it is.
    current: usize,
    ended: Vec<bool>,
    /// How often a turn has passed on.
    switches: usize,
}

/// Who may run.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
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
                ended: vec![false; count],
                switches: 0,
            }),
            changed: Condvar::new(),
            one_in,
        })
    }

    /// What one of the threads does, from its first turn to its last.
    pub fn run<T>(&self, number: usize, work: impl FnOnce() -> T) -> T {
        struct End<'a>(&'a Turns, usize);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                NUMBER.set(None);
                let mut state = self.0.state.lock().unwrap();
                state.ended[self.1] = true;
                Turns::pass_on(&mut state, Some(self.1));
                self.0.changed.notify_all();
            }
        }
        NUMBER.set(Some(number));
        let _end = End(self, number);
        self.wait_for(number);
        work()
    }

    /// Which of the threads this is; `None` of all others, which never wait.
    pub fn number() -> Option<usize> {
        NUMBER.get()
    }

    fn wait_for(&self, number: usize) {
        let state = self.state.lock().unwrap();
        let others = |state: &mut State| state.current != number;
        drop(self.changed.wait_while(state, others).unwrap());
    }

    /// Somebody's turn, not that of `but` if there is anybody else.
    fn pass_on(state: &mut State, but: Option<usize>) {
        let count = state.ended.len();
        let able: Vec<usize> = (0..count).filter(|i| !state.ended[*i]).collect();
        let others: Vec<usize> = able.iter().copied().filter(|i| Some(*i) != but).collect();
        let able = if others.is_empty() { able } else { others };
        if !able.is_empty() {
            let next = able[state.dice.below(able.len())];
            state.switches += usize::from(next != state.current);
            state.current = next;
        }
    }

    /// Maybe others run, before this thread goes on.
    pub fn step(&self) {
        let Some(number) = Self::number() else { return };
        let mut state = self.state.lock().unwrap();
        if state.dice.below(self.one_in) == 0 {
            Self::pass_on(&mut state, None);
            self.changed.notify_all();
        }
        drop(state);
        self.wait_for(number);
    }

    /// Others run, as long as this thread has to wait for something that they do.
    pub fn wait_until(&self, is_so: impl Fn() -> bool) {
        let number = Self::number();
        for _ in 0..1_000_000 {
            if is_so() {
                return;
            }
            let Some(number) = number else {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            };
            let mut state = self.state.lock().unwrap();
            Self::pass_on(&mut state, Some(number));
            self.changed.notify_all();
            drop(state);
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
}
