//! Builds the one function that is not Rust: `sled/sync.c` says what it is for.

fn main() {
    println!("cargo:rerun-if-changed=sled/sync.c");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The whole archive, since the linker has seen no call of the function when it comes to it.
        cc::Build::new().file("sled/sync.c").cargo_metadata(false).compile("tidegate_sync");
        println!("cargo:rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap_or_default());
        println!("cargo:rustc-link-lib=static:+whole-archive=tidegate_sync");
    }
}
