@0xe5b1f0a3c94d2786;
# The messages in which TileDB's clients and REST servers speak of arrays, groups and queries: names,
# numbers and types of their fields, which is all that two programs must agree on. The names count
# too: they are those of the JSON form. Grouped by what they are about. What only one library can make
# something of, how far its own reader or writer is, stands as AnyPointer: it is there or not.
#
# `rest_capnp.rs` beside this file is made of it:
#
#     cargo install capnpc --version 0.27.0         # and `capnp`, of the Debian package capnproto
#     capnp compile -orust --src-prefix=azulejo-capi/src/serialize azulejo-capi/src/serialize/rest.capnp
#     sed 's/crate::rest_capnp/crate::serialize::rest_capnp/g' rest_capnp.rs \
#         > azulejo-capi/src/serialize/rest_capnp.rs && rm rest_capnp.rs

# ---- settings and values

struct KV {
  key @0 :Text;
  value @1 :Text;
}

struct Config {
  entries @0 :List(KV);
}

struct Map(Key, Value) {
  entries @0 :List(Entry);
  struct Entry {
    key @0 :Key;
    value @1 :Value;
  }
}

struct MapUInt64 {
  entries @0 :List(Entry);
  struct Entry {
    key @0 :Text;
    value @1 :UInt64;
  }
}

struct MapFloat64 {
  entries @0 :List(Entry);
  struct Entry {
    key @0 :Text;
    value @1 :Float64;
  }
}

struct Stats {
  timers @0 :MapFloat64;
  counters @1 :MapUInt64;
}

# Values of one type: the list of that type is set.
struct DomainArray {
  int8 @0 :List(Int8);
  uint8 @1 :List(UInt8);
  int16 @2 :List(Int16);
  uint16 @3 :List(UInt16);
  int32 @4 :List(Int32);
  uint32 @5 :List(UInt32);
  int64 @6 :List(Int64);
  uint64 @7 :List(UInt64);
  float32 @8 :List(Float32);
  float64 @9 :List(Float64);
}

# ---- schemas

struct FloatScaleConfig {
  scale @0 :Float64;
  offset @1 :Float64;
  byteWidth @2 :UInt64;
}

struct WebpConfig {
  quality @0 :Float32;
  format @1 :UInt8;
  lossless @2 :Bool;
  extentX @3 :UInt16;
  extentY @4 :UInt16;
}

struct Filter {
  type @0 :Text;
  data :union {
    text @1 :Text;
    bytes @2 :Data;
    int8 @3 :Int8;
    uint8 @4 :UInt8;
    int16 @5 :Int16;
    uint16 @6 :UInt16;
    int32 @7 :Int32;
    uint32 @8 :UInt32;
    int64 @9 :Int64;
    uint64 @10 :UInt64;
    float32 @11 :Float32;
    float64 @12 :Float64;
  }
  floatScaleConfig @13 :FloatScaleConfig;
  webpConfig @14 :WebpConfig;
}

struct FilterPipeline {
  filters @0 :List(Filter);
}

struct Attribute {
  cellValNum @0 :UInt32;
  name @1 :Text;
  type @2 :Text;
  filterPipeline @3 :FilterPipeline;
  fillValue @4 :Data;
  nullable @5 :Bool;
  fillValueValidity @6 :Bool;
  order @7 :Text;
  enumerationName @8 :Text;
}

struct Dimension {
  name @0 :Text;
  nullTileExtent @1 :Bool;
  type @2 :Text;
  tileExtent :union {
    int8 @3 :Int8;
    uint8 @4 :UInt8;
    int16 @5 :Int16;
    uint16 @6 :UInt16;
    int32 @7 :Int32;
    uint32 @8 :UInt32;
    int64 @9 :Int64;
    uint64 @10 :UInt64;
    float32 @11 :Float32;
    float64 @12 :Float64;
  }
  domain @13 :DomainArray;
  filterPipeline @14 :FilterPipeline;
}

struct Domain {
  cellOrder @0 :Text;
  dimensions @1 :List(Dimension);
  tileOrder @2 :Text;
  type @3 :Text;
}

struct DimensionLabel {
  dimensionId @0 :UInt32;
  name @1 :Text;
  uri @2 :Text;
  attributeName @3 :Text;
  order @4 :Text;
  type @5 :Text;
  cellValNum @6 :UInt32;
  external @7 :Bool;
  relative @8 :Bool;
  schema @9 :ArraySchema;
}

struct Enumeration {
  name @0 :Text;
  pathName @1 :Text;
  type @2 :Text;
  cellValNum @3 :UInt32;
  ordered @4 :Bool;
  data @5 :Data;
  offsets @6 :Data;
}

struct CurrentDomain {
  version @0 :UInt32;
  type @1 :Text;
  union {
    emptyCurrentDomain @2 :Void;
    ndRectangle @3 :NDRectangle;
  }
}

struct NDRectangle {
  ndranges @0 :List(SubarrayRanges);
}

struct ArraySchema {
  arrayType @0 :Text;
  attributes @1 :List(Attribute);
  capacity @2 :UInt64;
  cellOrder @3 :Text;
  coordsFilterPipeline @4 :FilterPipeline;
  domain @5 :Domain;
  offsetFilterPipeline @6 :FilterPipeline;
  tileOrder @7 :Text;
  uri @8 :Text;
  version @9 :List(Int32);
  allowsDuplicates @10 :Bool;
  validityFilterPipeline @11 :FilterPipeline;
  name @12 :Text;
  timestampRange @13 :List(UInt64);
  dimensionLabels @14 :List(DimensionLabel);
  enumerations @15 :List(Enumeration);
  enumerationPathMap @16 :List(KV);
  currentDomain @17 :CurrentDomain;
}

struct ArrayCreateRequest {
  uri @0 :Text;
  schema @1 :ArraySchema;
}

struct ArraySchemaEvolution {
  attributesToDrop @0 :List(Text);
  attributesToAdd @1 :List(Attribute);
  timestampRange @2 :List(UInt64);
  enumerationsToAdd @3 :List(Enumeration);
  enumerationsToDrop @4 :List(Text);
  enumerationsToExtend @5 :List(Enumeration);
  currentDomainToExpand @6 :CurrentDomain;
}

# ---- open arrays

struct ArrayOpen {
  config @0 :Config;
  queryType @1 :Text;
}

struct Array {
  endTimestamp @0 :UInt64;
  queryType @1 :Text;
  uri @2 :Text;
  startTimestamp @3 :UInt64;
  arraySchemaLatest @4 :ArraySchema;
  arraySchemasAll @5 :Map(Text, ArraySchema);
  nonEmptyDomain @6 :NonEmptyDomainList;
  arrayMetadata @7 :ArrayMetadata;
  arrayDirectory @8 :ArrayDirectory;
  fragmentMetadataAll @9 :List(FragmentMetadata);
  openedAtEndTimestamp @10 :UInt64;
}

struct NonEmptyDomain {
  nonEmptyDomain @0 :DomainArray;
  isEmpty @1 :Bool;
  sizes @2 :List(UInt64);
}

struct NonEmptyDomainList {
  nonEmptyDomains @0 :List(NonEmptyDomain);
}

struct ArrayMetadata {
  entries @0 :List(MetadataEntry);
  struct MetadataEntry {
    key @0 :Text;
    type @1 :Text;
    valueNum @2 :UInt32;
    value @3 :Data;
    del @4 :Bool;
  }
}

struct ArrayDirectory {
  unfilteredFragmentUris @0 :List(Text);
  consolidatedCommitUris @1 :List(Text);
  arraySchemaUris @2 :List(Text);
  latestArraySchemaUri @3 :Text;
  arrayMetaUrisToVacuum @4 :List(Text);
  arrayMetaVacUrisToVacuum @5 :List(Text);
  commitUrisToConsolidate @6 :List(Text);
  commitUrisToVacuum @7 :List(Text);
  consolidatedCommitUrisToVacuum @8 :List(Text);
  arrayMetaUris @9 :List(TimestampedURI);
  fragmentMetaUris @10 :List(Text);
  deleteAndUpdateTileLocation @11 :List(DeleteAndUpdateTileLocation);
  timestampStart @12 :UInt64;
  timestampEnd @13 :UInt64;
  struct TimestampedURI {
    uri @0 :Text;
    timestampStart @1 :UInt64;
    timestampEnd @2 :UInt64;
  }
  struct DeleteAndUpdateTileLocation {
    uri @0 :Text;
    conditionMarker @1 :Text;
    offset @2 :UInt64;
  }
}

# ---- fragments

struct FragmentMetadata {
  fileSizes @0 :List(UInt64);
  fileVarSizes @1 :List(UInt64);
  fileValiditySizes @2 :List(UInt64);
  fragmentUri @3 :Text;
  hasTimestamps @4 :Bool;
  hasDeleteMeta @5 :Bool;
  sparseTileNum @6 :UInt64;
  tileIndexBase @7 :UInt64;
  tileOffsets @8 :List(List(UInt64));
  tileVarOffsets @9 :List(List(UInt64));
  tileVarSizes @10 :List(List(UInt64));
  tileValidityOffsets @11 :List(List(UInt64));
  tileMinBuffer @12 :List(List(UInt8));
  tileMinVarBuffer @13 :List(List(UInt8));
  tileMaxBuffer @14 :List(List(UInt8));
  tileMaxVarBuffer @15 :List(List(UInt8));
  tileSums @16 :List(List(UInt8));
  tileNullCounts @17 :List(List(UInt64));
  fragmentMins @18 :List(List(UInt8));
  fragmentMaxs @19 :List(List(UInt8));
  fragmentSums @20 :List(UInt64);
  fragmentNullCounts @21 :List(UInt64);
  version @22 :UInt32;
  timestampRange @23 :List(UInt64);
  lastTileCellNum @24 :UInt64;
  nonEmptyDomain @25 :NonEmptyDomainList;
  rtree @26 :Data;
  hasConsolidatedFooter @27 :Bool;
  gtOffsets @28 :GenericTileOffsets;
  arraySchemaName @29 :Text;
  tileGlobalOrderMinBuffer @30 :List(List(UInt8));
  tileGlobalOrderMinVarBuffer @31 :List(List(UInt8));
  tileGlobalOrderMaxBuffer @32 :List(List(UInt8));
  tileGlobalOrderMaxVarBuffer @33 :List(List(UInt8));
  struct GenericTileOffsets {
    rtree @0 :UInt64;
    tileOffsets @1 :List(UInt64);
    tileVarOffsets @2 :List(UInt64);
    tileVarSizes @3 :List(UInt64);
    tileValidityOffsets @4 :List(UInt64);
    tileMinOffsets @5 :List(UInt64);
    tileMaxOffsets @6 :List(UInt64);
    tileSumOffsets @7 :List(UInt64);
    tileNullCountOffsets @8 :List(UInt64);
    fragmentMinMaxSumNullCountOffset @9 :UInt64;
    processedConditionsOffsets @10 :UInt64;
    tileGlobalOrderMinOffsets @11 :List(UInt64);
    tileGlobalOrderMaxOffsets @12 :List(UInt64);
  }
}

struct FragmentInfoRequest {
  config @0 :Config;
}

struct SingleFragmentInfo {
  arraySchemaName @0 :Text;
  meta @1 :FragmentMetadata;
  fragmentSize @2 :UInt64;
}

struct FragmentInfo {
  arraySchemaLatest @0 :ArraySchema;
  arraySchemasAll @1 :Map(Text, ArraySchema);
  fragmentInfo @2 :List(SingleFragmentInfo);
  toVacuum @3 :List(Text);
}

# ---- queries

struct SubarrayRanges {
  type @0 :Text;
  hasDefaultRange @1 :Bool;
  buffer @2 :Data;
  bufferSizes @3 :List(UInt64);
  bufferStartSizes @4 :List(UInt64);
}

struct LabelSubarrayRanges {
  dimensionId @0 :UInt32;
  name @1 :Text;
  ranges @2 :SubarrayRanges;
}

struct Subarray {
  layout @0 :Text;
  ranges @1 :List(SubarrayRanges);
  stats @2 :Stats;
  relevantFragments @3 :List(UInt32);
  labelRanges @4 :List(LabelSubarrayRanges);
  attributeRanges @5 :Map(Text, SubarrayRanges);
  coalesceRanges @6 :Bool = true;
}

struct ReadState {
  overflowed @0 :Bool;
  unsplittable @1 :Bool;
  initialized @2 :Bool;
  subarrayPartitioner @3 :AnyPointer;
}

struct ConditionClause {
  fieldName @0 :Text;
  value @1 :Data;
  op @2 :Text;
  useEnumeration @3 :Bool;
}

struct ASTNode {
  isExpression @0 :Bool;
  fieldName @1 :Text;
  value @2 :Data;
  op @3 :Text;
  children @4 :List(ASTNode);
  combinationOp @5 :Text;
  useEnumeration @6 :Bool;
  offsets @7 :Data;
}

struct Condition {
  clauses @0 :List(ConditionClause);
  clauseCombinationOps @1 :List(Text);
  tree @2 :ASTNode;
}

struct QueryReader {
  layout @0 :Text;
  subarray @1 :Subarray;
  readState @2 :ReadState;
  condition @3 :Condition;
  stats @4 :Stats;
  dimLabelIncreasing @5 :Bool;
}

struct FragmentIndex {
  tileIdx @0 :UInt64;
  cellIdx @1 :UInt64;
}

struct ReadStateIndex {
  resultCellSlab @0 :AnyPointer;
  fragTileIdx @1 :List(FragmentIndex);
  doneAddingResultTiles @2 :Bool;
}

struct ReaderIndex {
  layout @0 :Text;
  subarray @1 :Subarray;
  readState @2 :ReadStateIndex;
  condition @3 :Condition;
  stats @4 :Stats;
}

struct Writer {
  checkCoordDups @0 :Bool;
  checkCoordOOB @1 :Bool;
  dedupCoords @2 :Bool;
  subarray @3 :DomainArray;
  subarrayRanges @4 :Subarray;
  stats @5 :Stats;
  globalWriteStateV1 @6 :AnyPointer;
  unorderedWriterState @7 :AnyPointer;
}

struct Delete {
  condition @0 :Condition;
  stats @1 :Stats;
}

struct AttributeBufferHeader {
  name @0 :Text;
  fixedLenBufferSizeInBytes @1 :UInt64;
  varLenBufferSizeInBytes @2 :UInt64;
  validityLenBufferSizeInBytes @3 :UInt64;
  originalFixedLenBufferSizeInBytes @4 :UInt64;
  originalVarLenBufferSizeInBytes @5 :UInt64;
  originalValidityLenBufferSizeInBytes @6 :UInt64;
}

struct WrittenFragmentInfo {
  uri @0 :Text;
  timestampRange @1 :List(UInt64);
}

struct Aggregate {
  outputFieldName @0 :Text;
  inputFieldName @1 :Text;
  name @2 :Text;
}

struct QueryChannel {
  default @0 :Bool;
  aggregates @1 :List(Aggregate);
}

struct Query {
  attributeBufferHeaders @0 :List(AttributeBufferHeader);
  layout @1 :Text;
  status @2 :Text;
  type @3 :Text;
  writer @4 :Writer;
  reader @5 :QueryReader;
  array @6 :Array;
  totalFixedLengthBufferBytes @7 :UInt64;
  totalVarLenBufferBytes @8 :UInt64;
  totalValidityBufferBytes @9 :UInt64;
  varOffsetsMode @10 :Text;
  varOffsetsAddExtraElement @11 :Bool;
  varOffsetsBitsize @12 :Int32;
  config @13 :Config;
  stats @14 :Stats;
  readerIndex @15 :ReaderIndex;
  denseReader @16 :QueryReader;
  delete @17 :Delete;
  writtenFragmentInfo @18 :List(WrittenFragmentInfo);
  writtenBuffers @19 :List(Text);
  orderedDimLabelReader @20 :QueryReader;
  channels @21 :List(QueryChannel);
}

struct EstimatedResultSize {
  resultSizes @0 :Map(Text, ResultSize);
  memorySizes @1 :Map(Text, MemorySize);
  struct ResultSize {
    sizeFixed @0 :Float64;
    sizeVar @1 :Float64;
    sizeValidity @2 :Float64;
  }
  struct MemorySize {
    sizeFixed @0 :UInt64;
    sizeVar @1 :UInt64;
    sizeValidity @2 :UInt64;
  }
}

# ---- groups

struct GroupMember {
  uri @0 :Text;
  type @1 :Text;
  relative @2 :Bool;
  name @3 :Text;
}

struct Group {
  config @0 :Config;
  group @1 :GroupDetails;
  struct GroupDetails {
    members @0 :List(GroupMember);
    metadata @1 :ArrayMetadata;
    logicalURI @2 :Text;
  }
}

# ---- requests to servers

struct ArrayDeleteFragmentsListRequest {
  config @0 :Config;
  entries @1 :List(Text);
}

struct ArrayDeleteFragmentsTimestampsRequest {
  config @0 :Config;
  startTimestamp @1 :UInt64;
  endTimestamp @2 :UInt64;
}

struct MapEnumeration {
  entries @0 :List(Entry);
  struct Entry {
    key @0 :Text;
    value @1 :List(Enumeration);
  }
}

struct LoadEnumerationsRequest {
  config @0 :Config;
  enumerations @1 :List(Text);
}

struct LoadEnumerationsResponse {
  enumerations @0 :List(Enumeration);
  allEnumerations @1 :MapEnumeration;
}

struct LoadArraySchemaRequest {
  config @0 :Config;
  includeEnumerations @1 :Bool;
}

struct LoadArraySchemaResponse {
  schema @0 :ArraySchema;
  arraySchemasAll @1 :Map(Text, ArraySchema);
}

struct QueryPlanRequest {
  config @0 :Config;
  query @1 :Query;
}

struct QueryPlanResponse {
  queryLayout @0 :Text;
  strategyName @1 :Text;
  arrayType @2 :Text;
  attributeNames @3 :List(Text);
  dimensionNames @4 :List(Text);
}

struct ConsolidationPlanRequest {
  config @0 :Config;
  fragmentSize @1 :UInt64;
}

struct ConsolidationPlanResponse {
  fragmentUrisPerNode @0 :List(List(Text));
}
