use super::*;
use crate::storage::{Uri, conformance};

fn path(uri: &str) -> StorePath {
    Uri::parse(uri).unwrap().path().clone()
}

#[test]
fn meets_the_contract() {
    conformance::check(&ObjectStorage::in_memory(), &path("s3://bucket/root"));
    conformance::check(&ObjectStorage::in_memory(), &path("azure://bucket/a b/é+"));
    conformance::check_pages(&ObjectStorage::in_memory(), &path("gs://bucket/pages"), 1_100);
}
