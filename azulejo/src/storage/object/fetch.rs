//! Many ranges of many objects: near ones joined, long ones cut, all of them asked for side by
//! side.

use super::bucket::{Shared, ended, object_key, pause};
use super::gate::Admission;
use super::http::{ServerAnswer, observed};
use crate::error::{Error, Result};
use crate::storage::coalesce::coalesce_evenly;
use crate::storage::refusal::too_short;
use crate::storage::{ReadRange, ReadRequest, StorePath, Tail};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// A longer range is asked for only if the object is known to have it: a damaged length must not
/// cost more than a request.
const CREDIBLE: u64 = 1 << 30;

/// An answer that broke off after this many bytes counts as progress.
const PROGRESS: u64 = 16 << 10;

/// One object of a plan.
#[derive(Debug)]
struct ObjectPlace {
    path: StorePath,
    key: Path,
}

/// Consecutive bytes of one object, which serve several requests.
#[derive(Debug)]
struct ReadRun {
    place: Arc<ObjectPlace>,
    /// `None` for the whole object, whatever its size.
    range: Option<Range<u64>>,
    /// What of the whole object is wanted: all, or all up to a size.
    whole: ReadRange,
    /// The requests, and the ranges that they want.
    members: Vec<(usize, Range<u64>)>,
}

/// Which requests to make of a server.
#[derive(Debug)]
pub(super) struct Plan {
    runs: Vec<ReadRun>,
    requests: usize,
    piece: u64,
    _under_way: UnderWay,
}

/// The requests that a run is made of, each with its place among all requests of the bucket; `None`
/// of a run that is to be [checked](Plan::check) first.
pub(super) type QueuedRuns = Vec<Option<Vec<QueuedRequest>>>;

/// A request that waits for its turn: the whole object where there is no range.
type QueuedRequest = (Option<Range<u64>>, Admission);

/// Bytes that are asked for, until this is dropped.
#[derive(Debug)]
struct UnderWay {
    bytes: u64,
    of: Arc<AtomicU64>,
}

impl UnderWay {
    /// With the bytes that all reads ask for now.
    fn new(bytes: u64, of: &Arc<AtomicU64>) -> (Self, u64) {
        // Damaged lengths may wrap around, here and back.
        let others = of.fetch_add(bytes, Ordering::Relaxed);
        let of = Arc::clone(of);
        (Self { bytes, of }, others.saturating_add(bytes))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that have arrived.
#[derive(Debug)]
pub(super) struct FetchedPart {
    run: usize,
    /// Where in the object they begin.
    at: u64,
    pub(super) bytes: Bytes,
}

impl Plan {
    pub(super) fn new(requests: &[ReadRequest], shared: &Shared) -> Result<Self> {
        let mut places: Vec<(Arc<ObjectPlace>, Vec<usize>)> = Vec::new();
        let mut known: HashMap<&StorePath, usize> = HashMap::new();
        for (i, request) in requests.iter().enumerate() {
            let at = match known.get(&request.path) {
                Some(at) => *at,
                None => {
                    let place = ObjectPlace {
                        path: request.path.clone(),
                        key: object_key(&request.path)?,
                    };
                    places.push((Arc::new(place), Vec::new()));
                    known.insert(&request.path, places.len() - 1);
                    places.len() - 1
                }
            };
            places[at].1.push(i);
        }
        let limits = &shared.limits;
        let lens = requests.iter().map(|request| request.range.known_len());
        let len = lens.fold(0, u64::saturating_add);
        // What is known to be wanted is divided among the connections, from the first byte on.
        let (under_way, all) = UnderWay::new(len, &shared.asked);
        let piece = limits.piece_of(all);
        let mut runs = Vec::new();
        for (place, wanted) in places {
            let mut spans = Vec::with_capacity(wanted.len());
            for &i in &wanted {
                spans.push(match &requests[i].range {
                    ReadRange::Bytes(range) if range.start < range.end => range.clone(),
                    ReadRange::Bytes(_) => 0..0,
                    whole @ (ReadRange::All | ReadRange::AtMost(_)) => {
                        runs.push(ReadRun {
                            place: Arc::clone(&place),
                            range: None,
                            whole: whole.clone(),
                            members: vec![(i, 0..0)],
                        });
                        0..0
                    }
                });
            }
            for merged in coalesce_evenly(&spans, limits.gap, limits.joined.min(piece)) {
                let members = merged
                    .members
                    .iter()
                    .map(|&m| (wanted[m], spans[m].clone()))
                    .collect();
                runs.push(ReadRun {
                    place: Arc::clone(&place),
                    range: Some(merged.range),
                    whole: ReadRange::All,
                    members,
                });
            }
        }
        // In the order in which they were asked for.
        runs.sort_by_key(|run| run.members.iter().map(|(i, _)| *i).min());
        Ok(Self {
            runs,
            requests: requests.len(),
            piece,
            _under_way: under_way,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes that will arrive, where all ranges are known.
    pub(super) fn len(&self) -> u64 {
        let lens = self
            .runs
            .iter()
            .filter_map(|run| run.range.as_ref())
            .map(|range| range.end - range.start);
        lens.fold(0, u64::saturating_add)
    }

    /// Takes the places of all its requests among those of the bucket, now.
    pub(super) fn queue(&self, shared: &Shared) -> QueuedRuns {
        let runs = self.runs.iter();
        runs.map(|run| (!is_doubtful(run)).then(|| self.queue_run(shared, run)))
            .collect()
    }

    fn queue_run(&self, shared: &Shared, run: &ReadRun) -> Vec<QueuedRequest> {
        let queued = self.pieces(run).into_iter().map(|piece| {
            let bytes = piece.as_ref().map(|piece| piece.end - piece.start);
            (piece, shared.gate.turn(shared.limits.permits(bytes)))
        });
        queued.collect()
    }

    /// Begins the requests of all runs: run, request of the run, its range.
    async fn begin(
        &self,
        shared: &Arc<Shared>,
        queued: QueuedRuns,
        mut spawn: impl FnMut(usize, &ReadRun, usize, QueuedRequest),
    ) -> Result<()> {
        let mut doubtful = Vec::new();
        for (i, (run, queued)) in self.runs.iter().zip(queued).enumerate() {
            match queued {
                Some(queued) => {
                    let requests = queued.into_iter().enumerate();
                    requests.for_each(|(j, request)| spawn(i, run, j, request));
                }
                None => doubtful.push((i, run)),
            }
        }
        // Turns wait for nothing but the requests of which they are.
        for (i, run) in doubtful {
            self.check(shared, run).await?;
            let requests = self.queue_run(shared, run).into_iter().enumerate();
            requests.for_each(|(j, request)| spawn(i, run, j, request));
        }
        Ok(())
    }

    /// The bytes of every request, in their order.
    pub(super) async fn fetch(
        &self,
        shared: &Arc<Shared>,
        queued: QueuedRuns,
    ) -> Result<Vec<Bytes>> {
        let mut tasks = JoinSet::new();
        let mut bodies: Vec<Vec<Bytes>> = vec![Vec::new(); self.runs.len()];
        let spawn = |i: usize, run: &ReadRun, j: usize, (piece, turn): QueuedRequest| {
            bodies[i].push(Bytes::new());
            let (shared, place) = (Arc::clone(shared), Arc::clone(&run.place));
            let whole = run.whole.clone();
            tasks.spawn(async move { (i, j, collect(&shared, &place, piece, &whole, turn).await) });
        };
        self.begin(shared, queued, spawn).await?;
        while let Some(done) = tasks.join_next().await {
            let (i, j, body) = done.map_err(|_| ended())?;
            bodies[i][j] = body?;
        }
        let mut results = vec![Bytes::new(); self.requests];
        for (run, pieces) in self.runs.iter().zip(bodies) {
            let body = join(pieces);
            let Some(range) = &run.range else {
                run.members
                    .iter()
                    .for_each(|(i, _)| results[*i] = body.clone());
                continue;
            };
            for (i, wanted) in &run.members {
                // Both lie in the run, whose length is that of a body in memory.
                let start = (wanted.start - range.start) as usize;
                let end = (wanted.end - range.start) as usize;
                results[*i] = body.slice(start..end);
            }
        }
        Ok(results)
    }

    /// Sends the bytes as they arrive.
    pub(super) async fn stream(
        &self,
        shared: &Arc<Shared>,
        queued: QueuedRuns,
        parts: Sender<Result<FetchedPart>>,
    ) -> Result<()> {
        let mut tasks = JoinSet::new();
        let spawn = |i: usize, run: &ReadRun, _, (piece, turn): QueuedRequest| {
            let (shared, place, parts) =
                (Arc::clone(shared), Arc::clone(&run.place), parts.clone());
            tasks.spawn(async move {
                let send = |at, bytes, _| {
                    // Nobody may be waiting any more, which is no error.
                    let _ = parts.send(Ok(FetchedPart { run: i, at, bytes }));
                };
                get(&shared, &place, piece, &ReadRange::All, turn, send).await
            });
        };
        self.begin(shared, queued, spawn).await?;
        while let Some(done) = tasks.join_next().await {
            done.map_err(|_| ended())??;
        }
        Ok(())
    }

    /// Gives the parts of arrived bytes to the requests that want them: request, offset in its
    /// range, bytes.
    pub(super) fn place(&self, part: &FetchedPart, mut give: impl FnMut(usize, usize, &[u8])) {
        let Some(run) = self.runs.get(part.run) else {
            return;
        };
        let end = part.at + part.bytes.len() as u64;
        for (request, wanted) in &run.members {
            let (from, to) = (wanted.start.max(part.at), wanted.end.min(end));
            if from < to {
                // Offsets in buffers.
                let bytes = &part.bytes[(from - part.at) as usize..(to - part.at) as usize];
                give(*request, (from - wanted.start) as usize, bytes);
            }
        }
    }

    /// Looks whether the object has the bytes of a run.
    async fn check(&self, shared: &Shared, run: &ReadRun) -> Result<()> {
        let ObjectPlace { path, key } = &*run.place;
        let head = observed(shared.store.head(key)).await;
        let head = head.map_err(|failure| shared.error("read", path, failure))?;
        match run.range.as_ref().map(|range| range.end) {
            Some(end) if end > head.size => Err(too_short(path, end, head.size)),
            _ => Ok(()),
        }
    }

    /// The requests that a run is made of.
    fn pieces(&self, run: &ReadRun) -> Vec<Option<Range<u64>>> {
        let Some(range) = run.range.clone() else {
            return vec![None];
        };
        let len = range.end - range.start;
        let number = len.div_ceil(self.piece).max(1);
        let step = len.div_ceil(number).max(1);
        let starts = (range.start..range.end).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        starts
            .map(|start| Some(start..range.end.min(start + step)))
            .collect()
    }
}

/// Whether a run is so long that the object's size is to be asked for first.
fn is_doubtful(run: &ReadRun) -> bool {
    let range = run.range.as_ref();
    range.is_some_and(|range| range.end - range.start > CREDIBLE)
}

fn join(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.as_mut_slice() {
        [] => Bytes::new(),
        [body] => std::mem::take(body),
        pieces => Bytes::from(pieces.concat()),
    }
}

/// One request's bytes in one buffer.
async fn collect(
    shared: &Shared,
    place: &ObjectPlace,
    range: Option<Range<u64>>,
    whole: &ReadRange,
    turn: Admission,
) -> Result<Bytes> {
    let mut first = Bytes::new();
    let mut body: Vec<u8> = Vec::new();
    get(shared, place, range, whole, turn, |_, bytes, len| {
        if body.is_empty() && first.is_empty() {
            // Often the only one, which is not copied then.
            first = bytes;
            return;
        }
        if body.is_empty() {
            // What a server announces may be more than it sends.
            let len = usize::try_from(len.min(64 << 20)).unwrap_or(0);
            body.reserve_exact(len.max(first.len()));
            body.extend_from_slice(&first);
        }
        body.extend_from_slice(&bytes);
    })
    .await?;
    Ok(if body.is_empty() {
        first
    } else {
        Bytes::from(body)
    })
}

/// Asks for a range, or for the whole object, when its turn has come, and gives the bytes to `sink`
/// in their order: offset in the object, bytes, length of all. What breaks off is continued.
async fn get(
    shared: &Shared,
    place: &ObjectPlace,
    range: Option<Range<u64>>,
    whole: &ReadRange,
    turn: Admission,
    mut sink: impl FnMut(u64, Bytes, u64),
) -> Result<()> {
    let ObjectPlace { path, key } = place;
    let mut at = range.as_ref().map_or(0, |range| range.start);
    let mut end = range.as_ref().map(|range| range.end);
    let mut version: Option<(Option<String>, u64)> = None;
    let mut attempt = 0;
    let mut turn = Some(turn);
    loop {
        let again = || {
            let bytes = end.map(|end| end - at);
            shared.gate.turn(shared.limits.permits(bytes))
        };
        let permit = turn.take().unwrap_or_else(again).come().await;
        let asked = match (end, at) {
            (None, 0) => None,
            (Some(end), _) => Some(GetRange::Bounded(at..end)),
            (None, at) => Some(GetRange::Offset(at)),
        };
        let options = GetOptions {
            range: asked,
            ..GetOptions::default()
        };
        let result = observed(shared.store.get_opts(key, options)).await;
        let result = result.map_err(|failure| shared.error("read", path, failure))?;
        let (size, found) = (result.meta.size, result.range.clone());
        match end {
            Some(end) if found.end < end => return Err(too_short(path, end, size)),
            Some(_) => {}
            None => {
                whole.within(path, size)?;
                end = Some(found.end);
            }
        }
        let now = (result.meta.e_tag.clone(), size);
        if version.as_ref().is_some_and(|before| *before != now) {
            let source = std::io::Error::new(
                std::io::ErrorKind::ResourceBusy,
                "the object was changed meanwhile",
            );
            return Err(Error::Storage {
                op: "read",
                uri: path.to_string(),
                source,
            });
        }
        version = Some(now);
        let all = end.unwrap_or(at);
        let len = all - range.as_ref().map_or(0, |range| range.start);
        let begun = at;
        let mut body = result.into_stream();
        let broken: Option<(object_store::Error, ServerAnswer)> = loop {
            let next = observed(async { body.next().await.transpose() }).await;
            match next {
                Ok(None) => break None,
                Ok(Some(bytes)) => {
                    let bytes = bytes.slice(
                        ..bytes
                            .len()
                            .min(usize::try_from(all - at).unwrap_or(usize::MAX)),
                    );
                    if !bytes.is_empty() {
                        let before = at;
                        at += bytes.len() as u64;
                        sink(before, bytes, len);
                    }
                }
                Err(failure) => break Some(failure),
            }
        };
        if at == all {
            return Ok(());
        }
        // A server that gets on is given time, one that sends a few bytes each time is not.
        attempt = if at - begun >= PROGRESS {
            1
        } else {
            attempt + 1
        };
        if attempt >= shared.limits.tries {
            let text = format!(
                "the answer broke off {} bytes before its end, {attempt} times",
                all - at
            );
            return Err(broken.map_or_else(
                || Error::Storage {
                    op: "read",
                    uri: path.to_string(),
                    source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, text),
                },
                |failure| shared.error("read", path, failure),
            ));
        }
        tracing::info!(%path, at, "an answer broke off; going on from there");
        drop(permit);
        tokio::time::sleep(pause(attempt)).await;
    }
}

/// A range in one buffer, behind all that wait now.
async fn collect_now(shared: &Shared, place: &ObjectPlace, range: Range<u64>) -> Result<Bytes> {
    let permits = shared.limits.permits(Some(range.end - range.start));
    let turn = shared.gate.turn(permits);
    collect(shared, place, Some(range), &ReadRange::All, turn).await
}

/// The end of an object.
pub(super) async fn tail(
    shared: &Shared,
    path: &StorePath,
    key: &Path,
    len: u64,
    turn: Admission,
) -> Result<Tail> {
    let tried = shared.tails.load(Ordering::Relaxed) && len > 0;
    let mut turn = Some(turn);
    if tried
        && let Some(turn) = turn.take()
        && let Some(tail) = suffix(shared, path, key, len, turn).await?
    {
        return Ok(tail);
    }
    let head = {
        let turn = turn.unwrap_or_else(|| shared.gate.turn(1));
        let _permit = turn.come().await;
        observed(shared.store.head(key)).await
    };
    let object_size = head
        .map_err(|failure| shared.error("read", path, failure))?
        .size;
    if tried && object_size > 0 {
        shared.tails.store(false, Ordering::Relaxed);
    }
    let start = object_size - object_size.min(len);
    if start == object_size {
        return Ok(Tail {
            bytes: Bytes::new(),
            object_size,
        });
    }
    let place = ObjectPlace {
        path: path.clone(),
        key: key.clone(),
    };
    Ok(Tail {
        bytes: collect_now(shared, &place, start..object_size).await?,
        object_size,
    })
}

/// The end of an object in one request; `None` where the server does not answer such requests, and
/// for empty objects.
async fn suffix(
    shared: &Shared,
    path: &StorePath,
    key: &Path,
    len: u64,
    turn: Admission,
) -> Result<Option<Tail>> {
    let options = GetOptions {
        range: Some(GetRange::Suffix(len)),
        ..GetOptions::default()
    };
    let permit = turn.come().await;
    let result = match observed(shared.store.get_opts(key, options)).await {
        Ok(result) => result,
        Err((error, answer)) => {
            let missing = matches!(error, object_store::Error::NotFound { .. });
            let unanswered = matches!(answer.status, None | Some(416 | 501))
                && !answer.timed_out
                && !answer.unreachable;
            // An empty object has no range at all, and some servers know no such ranges.
            return if unanswered && !missing {
                Ok(None)
            } else {
                Err(shared.error("read", path, (error, answer)))
            };
        }
    };
    let (object_size, range) = (result.meta.size, result.range.clone());
    let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let mut body: Vec<u8> = Vec::with_capacity(wanted.min(1 << 20));
    let mut stream = result.into_stream();
    while let Some(Ok(bytes)) = stream.next().await {
        body.extend_from_slice(&bytes[..bytes.len().min(wanted - body.len())]);
    }
    drop(permit);
    if body.len() < wanted {
        // It broke off.
        let place = ObjectPlace {
            path: path.clone(),
            key: key.clone(),
        };
        let rest = range.start + body.len() as u64..range.end;
        body.extend_from_slice(&collect_now(shared, &place, rest).await?);
    }
    Ok(Some(Tail {
        bytes: Bytes::from(body),
        object_size,
    }))
}
