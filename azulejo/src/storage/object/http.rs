//! One HTTP request: counted, limited in time, its failures noted.

use crate::storage::io_stats::{IoOp, IoStats};
use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Slower uploads than this many bytes a second are given up.
const SLOWEST_UPLOAD: u64 = 64 << 10;
/// How long a store may take to copy an object, at least.
const COPY_LIMIT: Duration = Duration::from_secs(300);
/// How long a machine of a cloud may take to say who it is; elsewhere nobody answers at those
/// addresses.
const METADATA_LIMIT: Duration = Duration::from_secs(2);
/// Addresses at which clouds tell their machines who they are.
const METADATA_HOSTS: [&str; 4] = [
    "169.254.169.254",
    "169.254.170.2",
    "[fd00:ec2::254]",
    "metadata.google.internal",
];

/// What a server said when a request failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerAnswer {
    /// The HTTP status, if there was an answer.
    pub(super) status: Option<u16>,
    /// Nothing came in time.
    pub(super) timed_out: bool,
    /// The server could not be reached.
    pub(super) unreachable: bool,
    /// Nobody knows any credentials, and the machine is none of a cloud.
    pub(super) no_credentials: bool,
    /// The region in which the bucket lies, if the server said so.
    pub(super) region: Option<String>,
}

tokio::task_local! {
    /// The last failure of the operation that the task is at.
    static LAST: RefCell<Option<ServerAnswer>>;
}

/// Runs an operation, and tells how its last request failed, if one did.
pub(super) async fn observed<T>(
    operation: impl Future<Output = object_store::Result<T>>,
) -> Result<T, (object_store::Error, ServerAnswer)> {
    let scope = async {
        let result = operation.await;
        result.map_err(|error| (error, LAST.with(RefCell::take).unwrap_or_default()))
    };
    LAST.scope(RefCell::default(), scope).await
}

fn note(answer: ServerAnswer) {
    // Requests outside of an operation fail unobserved.
    let _ = LAST.try_with(|last| last.replace(Some(answer)));
}

/// Makes clients whose requests are counted and limited in time.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    /// Where requests are counted.
    pub(super) stats: IoStats,
    /// How long a server may take to begin its answer, and again for each part of it.
    pub(super) patience: Duration,
    /// Whether a server that sends a whole file instead of a range of it is put up with.
    pub(super) whole_files: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Service {
            inner,
            connector: self.clone(),
        }))
    }
}

#[derive(Debug)]
struct Service {
    inner: HttpClient,
    connector: Connector,
}

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct TooSlow(Duration);

#[derive(Debug, thiserror::Error)]
#[error("the store has only promised to copy it")]
struct NotCopied;

#[derive(Debug, thiserror::Error)]
#[error("no credentials: none are set, and this machine has none of its own")]
struct NoCredentials;

/// What a request is for, told from its method and query.
fn kind(request: &HttpRequest) -> IoOp {
    let query = request.uri().query().unwrap_or_default();
    let has = |name: &str| {
        query
            .split('&')
            .any(|pair| pair == name || pair.split_once('=').is_some_and(|(key, _)| key == name))
    };
    let copies = [
        "x-amz-copy-source",
        "x-ms-copy-source",
        "x-goog-copy-source",
    ];
    match request.method().as_str() {
        "GET" if has("list-type") || has("delimiter") || has("comp") || has("prefix") => IoOp::List,
        "GET" => IoOp::Get,
        "HEAD" => IoOp::Head,
        "PUT"
            if copies
                .iter()
                .any(|name| request.headers().contains_key(*name)) =>
        {
            IoOp::Copy
        }
        "POST" if has("delete") || query.contains("comp=batch") => IoOp::Delete,
        "PUT" | "POST" if has("partNumber") || has("uploads") || has("uploadId") || has("comp") => {
            IoOp::Multipart
        }
        "PUT" => IoOp::Put,
        "DELETE" if has("uploadId") => IoOp::Multipart,
        "DELETE" => IoOp::Delete,
        _ => IoOp::Other,
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Connector {
            stats,
            patience,
            whole_files,
        } = &self.connector;
        let from_metadata = request
            .uri()
            .host()
            .is_some_and(|host| METADATA_HOSTS.contains(&host));
        let op = if from_metadata {
            IoOp::Other
        } else {
            kind(&request)
        };
        let sent = request.body().content_length() as u64;
        let range = range_of(&request);
        let suffix = matches!(range, Some(Asked::Last(_)));
        let asked = range.filter(|_| *whole_files);
        let limit = match from_metadata {
            true => METADATA_LIMIT,
            false if op == IoOp::Copy => COPY_LIMIT.max(*patience),
            false => patience.saturating_add(Duration::from_secs(sent / SLOWEST_UPLOAD)),
        };
        stats.add_requests(op, 1);
        if matches!(op, IoOp::Put | IoOp::Multipart) {
            stats.add_bytes(op, sent);
        }
        let result = tokio::time::timeout(limit, self.inner.execute(request)).await;
        let response = match result {
            Ok(Ok(response)) => response,
            failed => {
                stats.add_failure();
                let error = match failed {
                    Ok(Err(error)) => error,
                    _ => HttpError::new(HttpErrorKind::Timeout, TooSlow(limit)),
                };
                let timed_out = error.kind() == HttpErrorKind::Timeout;
                let unreachable = error.kind() == HttpErrorKind::Connect;
                note(ServerAnswer {
                    timed_out,
                    unreachable,
                    no_credentials: from_metadata,
                    ..ServerAnswer::default()
                });
                // Where no cloud is, asking again does not help.
                return Err(if from_metadata {
                    HttpError::new(HttpErrorKind::Unknown, NoCredentials)
                } else {
                    error
                });
            }
        };
        let status = response.status();
        let promised = response.headers().get("x-ms-copy-status");
        if op == IoOp::Copy && promised.is_some_and(|status| status == "pending") {
            // Whoever took it for done would delete what is to be copied.
            stats.add_failure();
            note(ServerAnswer::default());
            return Err(HttpError::new(HttpErrorKind::Unknown, NotCopied));
        }
        if !status.is_success() {
            if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
                stats.add_failure();
            }
            let region = response.headers().get("x-amz-bucket-region");
            let region = region
                .and_then(|region| region.to_str().ok())
                .map(str::to_owned);
            let no_credentials = from_metadata;
            note(ServerAnswer {
                status: Some(status.as_u16()),
                region,
                no_credentials,
                ..ServerAnswer::default()
            });
        }
        let (mut parts, body) = response.into_parts();
        if suffix && status.as_u16() == 500 {
            // Some servers stumble over the end of an object that is shorter than asked for. Asking
            // in another way is better than asking again.
            parts.status = object_store_status(416).unwrap_or(status);
            note(ServerAnswer {
                status: Some(416),
                ..ServerAnswer::default()
            });
        }
        let mut window = None;
        if let Some(asked) = asked
            && status.as_u16() == 200
            && let Some(size) = length(&parts.headers)
            && let Some((start, end)) = asked.within(size)
            && let Ok(value) = format!("bytes {start}-{}/{size}", end - 1).parse()
        {
            parts.status = object_store_status(206).unwrap_or(status);
            parts.headers.insert("content-range", value);
            parts.headers.insert("content-length", (end - start).into());
            window = Some((start, end - start));
        }
        let sleep = Box::pin(tokio::time::sleep(*patience));
        let counts = if matches!(op, IoOp::Put | IoOp::Multipart) {
            IoOp::Other
        } else {
            op
        };
        let metered = Metered {
            body,
            sleep,
            patience: *patience,
            stats: stats.clone(),
            op: counts,
            window,
        };
        let body = HttpResponseBody::new(metered);
        if !status.is_success() || !matches!(op, IoOp::List | IoOp::Multipart | IoOp::Delete) {
            return Ok(HttpResponse::from_parts(parts, body));
        }
        // These answers are small, and of no use in part: one that breaks off is a request that
        // failed, and is made again.
        match body.bytes().await {
            Ok(bytes) => Ok(HttpResponse::from_parts(parts, bytes.into())),
            Err(error) => {
                stats.add_failure();
                note(ServerAnswer::default());
                Err(HttpError::new(HttpErrorKind::Interrupted, error))
            }
        }
    }
}

/// The status type, which this crate has no name for.
fn object_store_status<S: TryFrom<u16>>(status: u16) -> Option<S> {
    S::try_from(status).ok()
}

/// A range as a request asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    From(u64, Option<u64>),
    Last(u64),
}

impl Asked {
    fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
        Some(match (start, end) {
            ("", end) => Self::Last(end.parse().ok()?),
            (start, "") => Self::From(start.parse().ok()?, None),
            (start, end) => Self::From(start.parse().ok()?, Some(end.parse().ok()?)),
        })
    }

    /// First byte and end of the range in an object; `None` if it is empty or lies outside.
    fn within(self, size: u64) -> Option<(u64, u64)> {
        let (start, end) = match self {
            Self::From(start, end) => (
                start,
                end.map_or(size, |end| end.saturating_add(1).min(size)),
            ),
            Self::Last(len) => (size.saturating_sub(len), size),
        };
        (start < end).then_some((start, end))
    }
}

fn range_of(request: &HttpRequest) -> Option<Asked> {
    Asked::parse(request.headers().get("range")?.to_str().ok()?)
}

fn length(headers: &object_store::HeaderMap) -> Option<u64> {
    headers.get("content-length")?.to_str().ok()?.parse().ok()
}

/// A body whose bytes are counted, and whose parts must come in time.
#[derive(Debug)]
struct Metered {
    body: HttpResponseBody,
    sleep: Pin<Box<Sleep>>,
    patience: Duration,
    stats: IoStats,
    op: IoOp,
    /// Of a whole file, the bytes to skip and those to pass on.
    window: Option<(u64, u64)>,
}

impl Metered {
    /// The part of a frame's bytes that lies in the window.
    fn cut(&mut self, mut data: Bytes) -> Bytes {
        let Some((skip, take)) = &mut self.window else {
            return data;
        };
        let skipped = (*skip).min(data.len() as u64);
        *skip -= skipped;
        // At most the frame's length.
        let mut data = data.split_off(skipped as usize);
        data.truncate(usize::try_from(*take).unwrap_or(usize::MAX));
        *take -= data.len() as u64;
        data
    }
}

impl Body for Metered {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        loop {
            if matches!(this.window, Some((_, 0))) {
                return Poll::Ready(None);
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => {
                    if this.sleep.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.stats.add_failure();
                    note(ServerAnswer {
                        timed_out: true,
                        ..ServerAnswer::default()
                    });
                    let error = HttpError::new(HttpErrorKind::Timeout, TooSlow(this.patience));
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    this.sleep.as_mut().reset(Instant::now() + this.patience);
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    this.stats.add_bytes(this.op, data.len() as u64);
                    let data = this.cut(data);
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    this.stats.add_failure();
                    let timed_out = error.kind() == HttpErrorKind::Timeout;
                    note(ServerAnswer {
                        timed_out,
                        ..ServerAnswer::default()
                    });
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.window, Some((_, 0))) || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.window {
            Some((_, take)) => SizeHint::with_exact(take),
            None => self.body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_understood() {
        assert_eq!(Asked::parse("bytes=3-9"), Some(Asked::From(3, Some(9))));
        assert_eq!(Asked::parse("bytes=-9"), Some(Asked::Last(9)));
        assert_eq!(Asked::parse("bytes=3-"), Some(Asked::From(3, None)));
        assert_eq!(Asked::parse("lines=3-"), None);
        assert_eq!(Asked::From(3, Some(9)).within(20), Some((3, 10)));
        assert_eq!(Asked::From(3, Some(u64::MAX)).within(5), Some((3, 5)));
        assert_eq!(Asked::From(5, None).within(5), None);
        assert_eq!(Asked::Last(9).within(5), Some((0, 5)));
        assert_eq!(Asked::Last(9).within(0), None);
    }

    #[test]
    fn requests_are_told_apart() {
        for (method, uri, headers, expected) in [
            ("GET", "http://h/b?list-type=2&prefix=a", None, IoOp::List),
            ("GET", "http://h/b/k", None, IoOp::Get),
            ("HEAD", "http://h/b/k", None, IoOp::Head),
            ("PUT", "http://h/b/k", None, IoOp::Put),
            ("PUT", "http://h/b/k", Some("x-amz-copy-source"), IoOp::Copy),
            (
                "PUT",
                "http://h/b/k?partNumber=1&uploadId=x",
                None,
                IoOp::Multipart,
            ),
            ("POST", "http://h/b/k?uploads", None, IoOp::Multipart),
            ("POST", "http://h/b?delete", None, IoOp::Delete),
            ("DELETE", "http://h/b/k", None, IoOp::Delete),
            (
                "PUT",
                "http://h/c/k?comp=block&blockid=1",
                None,
                IoOp::Multipart,
            ),
            (
                "GET",
                "http://h/c?restype=container&comp=list",
                None,
                IoOp::List,
            ),
            (
                "POST",
                "http://h/c?restype=container&comp=batch",
                None,
                IoOp::Delete,
            ),
            ("PROPFIND", "http://h/c", None, IoOp::Other),
        ] {
            let (mut parts, body) =
                HttpRequest::new(object_store::client::HttpRequestBody::empty()).into_parts();
            parts.method = method.parse().unwrap();
            parts.uri = uri.parse().unwrap();
            if let Some(name) = headers {
                parts.headers.insert(name, "x".parse().unwrap());
            }
            assert_eq!(
                kind(&HttpRequest::from_parts(parts, body)),
                expected,
                "{method} {uri}"
            );
        }
    }
}
