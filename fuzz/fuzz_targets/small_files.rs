#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| azulejo_fuzz::small_files(data));
