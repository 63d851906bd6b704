//! Counts what is asked of a store that no HTTP client stands before.

use crate::storage::io_stats::{IoOp, IoStats};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::fmt;

/// A store and the requests made of it.
#[derive(Debug)]
pub(super) struct Counting<S> {
    inner: S,
    stats: IoStats,
}

impl<S> Counting<S> {
    pub(super) fn new(inner: S, stats: &IoStats) -> Self {
        Self {
            inner,
            stats: stats.clone(),
        }
    }
}

impl<S: ObjectStore> fmt::Display for Counting<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for Counting<S> {
    async fn put_opts(
        &self,
        path: &Path,
        body: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.stats.add_requests(IoOp::Put, 1);
        self.stats
            .add_bytes(IoOp::Put, body.content_length() as u64);
        self.inner.put_opts(path, body, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.stats.add_requests(IoOp::Multipart, 1);
        let inner = self.inner.put_multipart_opts(path, options).await?;
        Ok(Box::new(CountingUpload {
            inner,
            stats: self.stats.clone(),
        }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let op = if options.head { IoOp::Head } else { IoOp::Get };
        self.stats.add_requests(op, 1);
        let mut result = self.inner.get_opts(path, options).await?;
        if op == IoOp::Get
            && let GetResultPayload::Stream(body) = result.payload
        {
            let stats = self.stats.clone();
            let count = move |bytes: &Result<bytes::Bytes>| {
                stats.add_bytes(
                    IoOp::Get,
                    bytes.as_ref().map_or(0, bytes::Bytes::len) as u64,
                );
            };
            result.payload = GetResultPayload::Stream(body.inspect(count).boxed());
        }
        Ok(result)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.stats.add_requests(IoOp::Delete, 1);
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.stats.add_requests(IoOp::List, 1);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.stats.add_requests(IoOp::List, 1);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.stats.add_requests(IoOp::Copy, 1);
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct CountingUpload {
    inner: Box<dyn MultipartUpload>,
    stats: IoStats,
}

#[async_trait]
impl MultipartUpload for CountingUpload {
    fn put_part(&mut self, body: PutPayload) -> UploadPart {
        self.stats.add_requests(IoOp::Multipart, 1);
        self.stats
            .add_bytes(IoOp::Multipart, body.content_length() as u64);
        self.inner.put_part(body)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.stats.add_requests(IoOp::Multipart, 1);
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.stats.add_requests(IoOp::Multipart, 1);
        self.inner.abort().await
    }
}
