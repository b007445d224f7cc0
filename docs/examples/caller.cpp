// psiphi emit ur5 forward_dynamics --files ctrl --target x86-64
// c++ -Ictrl caller.cpp -Lctrl -lforward_dynamics && ./a.out
#include "forward_dynamics.h"
#include <array>
#include <cstdio>

int main() {
    std::array<double, 6> q{0.3, -1.1, 1.3, -0.4, 0.0, 0.0}, v{}, tau{}, a{};
    forward_dynamics(q.data(), v.data(), tau.data(), a.data());
    for (double x : a) std::printf("%.17g\n", x);
}
