//! Compiles the shim between this program and the system, where it is known to work.

fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    let target = |name| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    let objects = cc::Build::new()
        .file("src/shim.c")
        .warnings_into_errors(true)
        .flag("-U_FORTIFY_SOURCE")
        .compile_intermediates();
    for object in objects {
        println!("cargo::rustc-link-arg-bins={}", object.display());
    }
}
