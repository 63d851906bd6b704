use super::file::{Body, claims, path_of, read};
use super::protocol::{Clock, Contender, Look, Owner};
use super::*;
use crate::storage::{Entry, MemoryStorage, PutNew, ReadRequest, Storage, StorageLayer, StorePath};
use bytes::Bytes;
use random::Random;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use turns::Turns;

#[path = "../../../../tests/support/random.rs"]
mod random;
#[path = "../../../../tests/support/turns.rs"]
mod turns;

const SHORT: Lease = Lease {
    beat: Duration::from_millis(40),
    expiry: Duration::from_millis(600),
};

/// A clock that goes on when it is told to.
#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Hand {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    List,
    Read,
    Put,
    PutNew,
}

type Event = Box<dyn FnOnce() + Send>;

/// A storage in which something happens once, before a call or behind it.
#[derive(Default)]
struct Meanwhile {
    inner: MemoryStorage,
    before: Mutex<Option<(Call, Event)>>,
    behind: Mutex<Option<(Call, Event)>>,
    /// Says that the next `put_new` failed, which it did not.
    denies: Mutex<bool>,
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Meanwhile {
    fn call<T>(&self, call: Call, work: impl FnOnce() -> T) -> T {
        let happens = |when: &Mutex<Option<(Call, Event)>>| {
            let event = when.lock().unwrap().take_if(|(at, _)| *at == call);
            if let Some((_, event)) = event {
                event();
            }
        };
        happens(&self.before);
        let done = work();
        happens(&self.behind);
        done
    }
}

impl StorageLayer for Meanwhile {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.call(Call::List, || self.inner.list(dir))
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.call(Call::Read, || self.inner.read(requests))
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call(Call::Put, || self.inner.put(path, body))
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        Some(self)
    }
}

impl PutNew for Meanwhile {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call(Call::PutNew, || self.inner.put_new(path, body))?;
        match std::mem::take(&mut *self.denies.lock().unwrap()) {
            true => Err(Error::Storage {
                op: "write",
                uri: path.to_string(),
                source: std::io::Error::other("no answer"),
            }),
            false => Ok(()),
        }
    }
}

/// An array and a clock.
#[derive(Debug, Clone)]
struct Place {
    location: Location,
    storage: Arc<Meanwhile>,
    clock: Arc<Hand>,
}

impl Place {
    fn new() -> Self {
        let storage = Arc::new(Meanwhile::default());
        let path = StorePath::memory("array");
        let schema = path.join("__schema/one");
        storage.inner.put(&schema, Bytes::new()).unwrap();
        let location = Location {
            storage: Arc::clone(&storage) as Arc<dyn Storage>,
            path,
        };
        let clock = Arc::default();
        Self {
            location,
            storage,
            clock,
        }
    }

    fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    /// Looks until there is a claim, or somebody else has it.
    fn try_one(&self, contender: &mut Contender) -> Option<(Owner, Duration)> {
        loop {
            match contender.look(&*self.clock).unwrap() {
                Look::Mine { owner, after } => return Some((owner, after)),
                Look::Wait => return None,
                Look::Again => {}
                Look::Impossible => panic!("there are claims here"),
            }
        }
    }

    fn one(&self) -> Owner {
        let found = self.try_one(&mut Contender::new(&self.location, Lease::USUAL));
        found.expect("nobody has it").0
    }

    /// Somebody who takes over from who gives no sign of life.
    fn successor(&self) -> Owner {
        let mut contender = Contender::new(&self.location, Lease::USUAL);
        assert!(self.try_one(&mut contender).is_none());
        self.pass(Lease::USUAL.expiry);
        self.try_one(&mut contender).expect("it has expired").0
    }

    fn holds(&self, owner: &Owner) -> bool {
        owner.is_held(self.clock.now())
    }

    /// Who the largest number belongs to.
    fn latest(&self) -> Body {
        let last = *claims(&self.location).unwrap().0.last().unwrap();
        Body::decode(&read(&self.location, last).unwrap().unwrap())
    }

    fn before(&self, call: Call, event: impl FnOnce() + Send + 'static) {
        *self.storage.before.lock().unwrap() = Some((call, Box::new(event)));
    }

    fn behind(&self, call: Call, event: impl FnOnce() + Send + 'static) {
        *self.storage.behind.lock().unwrap() = Some((call, Box::new(event)));
    }
}

/// Once more than they may, in every way in which they can.
fn goes_on(place: &Place, mut late: Owner) {
    late.beat(&*place.clock);
    assert!(!place.holds(&late));
    assert!(!late.decide(Some("late"), &*place.clock).unwrap());
    late.end();
}

#[test]
fn who_wakes_after_successors_harms_none_of_them() {
    let place = Place::new();
    let late = place.one();
    place.successor().end();
    let mut third = place.one();
    let before = place.latest();
    goes_on(&place, late);
    assert_eq!(place.latest(), before);
    assert!(place.holds(&third));
    assert!(third.decide(Some("right"), &*place.clock).unwrap());
    assert_eq!(place.latest().decided.as_deref(), Some("right"));
}

#[test]
fn who_wakes_in_another_array_harms_nobody() {
    let place = Place::new();
    let late = place.one();
    // The array is deleted, and another one made in its place: the same number of claims ago.
    let everything = |path: &StorePath| {
        let entries = place.location.storage.list(path).unwrap();
        entries
            .into_iter()
            .map(|e| path.join(&e.name))
            .collect::<Vec<_>>()
    };
    let claims_of_old = everything(&place.location.path);
    place.location.storage.delete(&claims_of_old).unwrap();
    let schema = place.location.path.join("__schema/two");
    place.location.storage.put(&schema, Bytes::new()).unwrap();
    let mut new = place.one();
    let before = place.latest();
    let mut late = late;
    late.beat(&*place.clock);
    // Whatever it believes now: it is nobody there.
    if late.decide(Some("late"), &*place.clock).unwrap() {
        assert_ne!(place.latest(), before, "numbers of another array");
    }
    late.end();
    let (numbers, _) = claims(&place.location).unwrap();
    let bodies = numbers
        .iter()
        .map(|n| read(&place.location, *n).unwrap().unwrap());
    assert!(bodies.map(|b| Body::decode(&b)).any(|body| body == before));
    new.settle();
}

#[test]
fn a_slow_sign_of_life_counts_from_its_beginning() {
    let place = Place::new();
    let mut owner = place.one();
    let there = place.clone();
    let mut contender = Contender::new(&place.location, Lease::USUAL);
    assert!(place.try_one(&mut contender).is_none());
    // The storage takes its time. Meanwhile another one takes over.
    place.before(Call::Put, move || {
        there.pass(Lease::USUAL.expiry);
        let (next, _) = there.try_one(&mut contender).expect("it has expired");
        assert!(there.holds(&next));
        std::mem::forget(next);
    });
    owner.beat(&*place.clock);
    assert!(!place.holds(&owner));
    // The same behind the put, before the look.
    let place = Place::new();
    let mut owner = place.one();
    let there = place.clone();
    place.behind(Call::Put, move || drop(there.successor()));
    owner.beat(&*place.clock);
    assert!(!place.holds(&owner));
    goes_on(&place, owner);
}

#[test]
fn a_slow_answer_to_a_look_does_not_prolong_a_claim() {
    let place = Place::new();
    let mut owner = place.one();
    place.pass(Duration::from_secs(5));
    let clock = Arc::clone(&place.clock);
    place.behind(Call::List, move || clock.pass(Duration::from_secs(39)));
    owner.beat(&*place.clock);
    assert!(place.holds(&owner));
    place.pass(Duration::from_secs(1));
    assert!(!place.holds(&owner));
}

#[test]
fn who_overtakes_the_living_waits_until_they_know() {
    let place = Place::new();
    let mut owner = place.one();
    let mut contender = Contender::new(&place.location, Lease::USUAL);
    assert!(place.try_one(&mut contender).is_none());
    place.pass(Lease::USUAL.expiry);
    // The owner lived all the time; the contender stands still between its look and its claim.
    let owner = {
        let shared = Arc::new(Mutex::new(None));
        let (there, kept) = (place.clone(), Arc::clone(&shared));
        place.before(Call::PutNew, move || {
            owner.beat(&*there.clock);
            assert!(there.holds(&owner));
            *kept.lock().unwrap() = Some(owner);
        });
        let (next, after) = place.try_one(&mut contender).expect("it looked expired");
        let owner = shared.lock().unwrap().take().unwrap();
        // Both may believe that they have it; one of them waits, and the other cannot decide.
        assert!(place.holds(&owner) && after > place.clock.now());
        let decided = &mut Some(next);
        place.pass(after.saturating_sub(place.clock.now()));
        assert!(!place.holds(&owner));
        decided.take();
        owner
    };
    goes_on(&place, owner);
}

#[test]
fn what_was_decided_goes_to_the_successor() {
    let place = Place::new();
    let mut owner = place.one();
    assert!(owner.decide(Some("x"), &*place.clock).unwrap());
    assert!(place.holds(&owner));
    let next = place.successor();
    assert_eq!(next.decided(), Some("x"));
    // That one dies as well, before it has done it.
    drop(next);
    let mut last = place.successor();
    assert_eq!(last.decided(), Some("x"));
    last.settle();
    last.end();
    assert_eq!(place.one().decided(), None);
    // Who has to stop in the midst says so, and nobody has to wait.
    goes_on(&place, owner);
    let mut owner = place.successor();
    assert!(owner.decide(Some("y"), &*place.clock).unwrap());
    owner.end();
    assert_eq!(place.one().decided(), Some("y"));
}

#[test]
fn of_decision_and_takeover_one_comes_first() {
    // Overtaken before the decision arrives.
    let place = Place::new();
    let mut owner = place.one();
    let there = place.clone();
    place.before(Call::PutNew, move || drop(there.successor()));
    assert!(!owner.decide(Some("x"), &*place.clock).unwrap());
    assert_eq!(place.latest().decided, None);
    goes_on(&place, owner);

    // Overtaken behind it: nobody can say, but the successor knows.
    let place = Place::new();
    let mut owner = place.one();
    let there = place.clone();
    place.behind(Call::PutNew, move || drop(there.successor()));
    assert!(!owner.decide(Some("x"), &*place.clock).unwrap());
    assert_eq!(place.latest().decided.as_deref(), Some("x"));
    goes_on(&place, owner);
    assert_eq!(place.latest().decided.as_deref(), Some("x"));
}

#[test]
fn an_error_does_not_say_that_nothing_was_written() {
    let place = Place::new();
    *place.storage.denies.lock().unwrap() = true;
    let mut owner = place.one();
    assert!(place.holds(&owner));
    *place.storage.denies.lock().unwrap() = true;
    assert!(owner.decide(Some("x"), &*place.clock).unwrap());
    assert_eq!(place.latest().decided.as_deref(), Some("x"));
}

#[test]
fn a_claim_ends_with_its_array() {
    let place = Place::new();
    let owner = place.one();
    let schema = place.location.path.join("__schema/one");
    place.location.storage.delete(&[schema]).unwrap();
    owner.end();
    assert_eq!(
        place.location.storage.list(&place.location.path).unwrap(),
        []
    );
}

#[test]
fn files_that_mean_nothing_expire() {
    let place = Place::new();
    for body in ["", "owner\n", "a\nb\nfree\n", "\u{0}\n1\nheld\n0\n\n\n"] {
        let (numbers, _) = claims(&place.location).unwrap();
        let path = path_of(&place.location, numbers.last().map_or(7, |n| n + 1));
        place.location.storage.put(&path, body.into()).unwrap();
        let owner = match Body::decode(body.as_bytes()).is_free {
            true => place.one(),
            false => place.successor(),
        };
        owner.end();
    }
    let path = path_of(&place.location, u64::MAX);
    place
        .location
        .storage
        .put(
            &path,
            Body {
                is_free: true,
                ..Body::new("x")
            }
            .encode(),
        )
        .unwrap();
    let failed = Contender::new(&place.location, Lease::USUAL).look(&*place.clock);
    assert!(matches!(failed, Err(Error::InvalidArgument(_))));
    for name in [
        "__azulejo_claim.",
        "__azulejo_claim.+1",
        "__azulejo_claim.01",
        "__azulejo_claim",
    ] {
        assert!(!is_claim(name), "{name}");
    }
    assert!(is_claim("__azulejo_claim.0") && is_claim("__azulejo_claim.18446744073709551615"));
}

/// A storage in which others may run before every call and behind it.
#[derive(Debug)]
struct Taken {
    inner: Arc<MemoryStorage>,
    turns: Arc<Turns>,
    /// Whose calls these are.
    me: usize,
    clock: Arc<Hand>,
}

impl Taken {
    fn call<T>(&self, work: impl FnOnce() -> T) -> T {
        self.turns.step(self.me);
        let done = work();
        // Mostly quick, now and then slower than any claim lasts.
        let seconds = match self.turns.dice(30) {
            0 => 45,
            1..4 => 12,
            _ => 0,
        };
        self.clock.pass(Duration::from_secs(seconds));
        self.turns.step(self.me);
        done
    }
}

impl StorageLayer for Taken {
    fn inner(&self) -> &dyn Storage {
        &*self.inner
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.call(|| self.inner.list(dir))
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.call(|| self.inner.read(requests))
    }

    fn put(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call(|| self.inner.put(path, body))
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        self.call(|| self.inner.delete(paths))
    }

    fn exclusive(&self) -> Option<&dyn PutNew> {
        Some(self)
    }
}

impl PutNew for Taken {
    fn put_new(&self, path: &StorePath, body: Bytes) -> Result<()> {
        self.call(|| self.inner.put_new(path, body))
    }
}

/// What is so, as nobody of those who take part can know.
#[derive(Debug, Default)]
struct Truth {
    /// What was decided for certain, in order: whoever has the claim then must find it, until
    /// one says that it is carried out.
    decided: Vec<String>,
    carried_out: Vec<String>,
    held: usize,
    overtaken: usize,
}

/// One schedule of three who want the claim again and again, sometimes die, and stand still
/// anywhere for any time.
fn play(seed: u64) -> Truth {
    let turns = Turns::new(seed, 3, 2);
    let memory = Arc::new(MemoryStorage::new());
    let path = StorePath::memory("array");
    memory
        .put(&path.join("__schema/one"), Bytes::new())
        .unwrap();
    let clock = Arc::new(Hand::default());
    let truth = Mutex::new(Truth::default());
    // Who believes to have it, until when.
    let believed: Mutex<[Option<Duration>; 3]> = Mutex::default();
    let believe = |me: usize, owner: &Owner, from: Duration| {
        let now = clock.now();
        let until = owner.is_held(now).then(|| owner.held_until());
        let mut believed = believed.lock().unwrap();
        believed[me] = until.filter(|_| now >= from);
        let holders = believed.iter().flatten().filter(|until| now < **until);
        assert!(holders.count() <= 1, "seed {seed}: {believed:?} at {now:?}");
    };
    thread::scope(|scope| {
        for me in 0..3 {
            let (turns, memory, clock) = (&turns, &memory, &clock);
            let (truth, believed, believe, path) = (&truth, &believed, &believe, &path);
            scope.spawn(move || {
                let storage: Arc<dyn Storage> = Arc::new(Taken {
                    inner: Arc::clone(memory),
                    turns: Arc::clone(turns),
                    me,
                    clock: Arc::clone(clock),
                });
                let location = Location {
                    storage,
                    path: path.clone(),
                };
                let mut dice = Random(seed ^ (me as u64) << 32);
                turns.run(me, || {
                    for round in 0..3 {
                        let mut contender = Contender::new(&location, Lease::USUAL);
                        let (mut owner, after) = loop {
                            match contender.look(&**clock).unwrap() {
                                Look::Mine { owner, after } => break (owner, after),
                                Look::Impossible => panic!("there are claims here"),
                                Look::Wait | Look::Again => clock.pass(Duration::from_secs(1)),
                            }
                        };
                        truth.lock().unwrap().held += 1;
                        while clock.now() < after {
                            owner.beat(&**clock);
                            clock.pass(Duration::from_secs(1));
                        }
                        believe(me, &owner, after);
                        // Before all else, what others have decided.
                        if let Some(decided) = owner.decided().map(String::from) {
                            let mut truth = truth.lock().unwrap();
                            if !truth.carried_out.contains(&decided) {
                                truth.carried_out.push(decided);
                            }
                            drop(truth);
                            owner.settle();
                        }
                        for _ in 0..dice.below(3) {
                            owner.beat(&**clock);
                            believe(me, &owner, after);
                        }
                        let mut is_dead = false;
                        if dice.below(2) == 0 {
                            let name = format!("{me}.{round}");
                            match owner.decide(Some(&name), &**clock).unwrap() {
                                true => {
                                    truth.lock().unwrap().decided.push(name.clone());
                                    believe(me, &owner, after);
                                    is_dead = dice.below(2) == 0;
                                    if !is_dead {
                                        let mut truth = truth.lock().unwrap();
                                        if !truth.carried_out.contains(&name) {
                                            truth.carried_out.push(name);
                                        }
                                        drop(truth);
                                        owner.settle();
                                    }
                                }
                                false => truth.lock().unwrap().overtaken += 1,
                            }
                        }
                        believed.lock().unwrap()[me] = None;
                        match is_dead || dice.below(5) == 0 {
                            true => drop(owner),
                            false => owner.end(),
                        }
                    }
                });
            });
        }
    });
    // Who comes at last finds what nobody has carried out.
    let location = Location {
        storage: memory,
        path,
    };
    let mut contender = Contender::new(&location, Lease::USUAL);
    let owner = loop {
        match contender.look(&*clock).unwrap() {
            Look::Mine { owner, .. } => break owner,
            _ => clock.pass(Lease::USUAL.expiry),
        }
    };
    let mut truth = truth.into_inner().unwrap();
    truth.carried_out.extend(owner.decided().map(String::from));
    let mut lost = truth.decided.iter();
    assert!(
        lost.all(|name| truth.carried_out.contains(name)),
        "seed {seed}: {truth:?}"
    );
    truth
}

#[test]
fn three_who_stand_still_anywhere_for_any_time() {
    let (mut held, mut overtaken, mut decided) = (0, 0, 0);
    for seed in 0..400 {
        let truth = play(seed);
        held += truth.held;
        overtaken += truth.overtaken;
        decided += truth.decided.len();
    }
    eprintln!("{held} claims, {decided} decisions, {overtaken} overtaken before theirs");
    assert!(held == 400 * 9 && decided > 400 && overtaken > 40);
}

fn wait(location: &Location) -> Claim {
    Claim::wait(location, SHORT).unwrap().unwrap()
}

#[test]
fn one_at_a_time_and_one_file_is_left() {
    let location = Place::new().location;
    let (inside, most, done) = <(AtomicUsize, AtomicUsize, AtomicUsize)>::default();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let claim = wait(&location);
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    assert!(claim.is_held());
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((most.into_inner(), done.into_inner()), (1, 80));
    assert_eq!(claims(&location).unwrap().0.len(), 1);
}

#[test]
fn the_dead_are_taken_over_by_one_and_the_living_are_not() {
    let location = Place::new().location;
    // A process that was killed renews nothing and deletes nothing.
    let dead = path_of(&location, 1);
    location
        .storage
        .put(&dead, Body::new("dead").encode())
        .unwrap();
    let inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let claim = wait(&location);
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                // Longer than a claim lasts that is not renewed.
                thread::sleep(SHORT.expiry * 2);
                assert!(claim.is_held());
                inside.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(claims(&location).unwrap().0.len(), 1);
}

#[test]
fn who_was_taken_for_dead_finds_out() {
    let location = Place::new().location;
    let claim = wait(&location);
    let next = path_of(&location, claims(&location).unwrap().0[0] + 1);
    location
        .storage
        .put(&next, Body::new("other").encode())
        .unwrap();
    let lost = (0..200).any(|_| {
        thread::sleep(SHORT.beat);
        !claim.is_held()
    });
    assert!(lost && !claim.decide(None).unwrap());
    drop(claim);
    let (numbers, _) = claims(&location).unwrap();
    assert_eq!(numbers.len(), 1);
    assert_eq!(
        Body::decode(&read(&location, numbers[0]).unwrap().unwrap()).owner,
        "other"
    );
}
