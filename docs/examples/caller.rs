// psiphi emit ur5 forward_dynamics --files ctrl --target x86-64
// rustc caller.rs -L ctrl && ./caller
#[link(name = "forward_dynamics", kind = "static")]
extern "C" {
    fn forward_dynamics(q: *const f64, v: *const f64, tau: *const f64, a: *mut f64);
}

fn main() {
    let (q, v, tau, mut a) = ([0.3, -1.1, 1.3, -0.4, 0.0, 0.0], [0.0; 6], [0.0; 6], [0.0; 6]);
    unsafe { forward_dynamics(q.as_ptr(), v.as_ptr(), tau.as_ptr(), a.as_mut_ptr()) };
    a.iter().for_each(|x| println!("{x}"));
}
