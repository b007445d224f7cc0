/* a = M^-1 (tau - C v - g) of two_link_arm
 *   in  q      2 numbers
 *   in  v      2 numbers
 *   in  tau    2 numbers
 *   out a      2 numbers
 * 18 *, 11 + or -, 1 /, 0 sqrt, 4 sin or cos. SI units.
 * At most 8 numbers are live at a time: 64 bytes of registers and stack.
 */
#include <math.h>

void forward_dynamics(const double *q, const double *v, const double *tau, double *a)
{
    const double t6 = cos(q[0]);
    const double t7 = sin(q[0]);
    const double t9 = t7 * 9.81;
    const double t10 = t6 * 9.81;
    const double t11 = v[0] * v[0];
    const double t14 = t10 * 3.2;
    const double t15 = cos(q[1]);
    const double t16 = sin(q[1]);
    const double t17 = v[0] + v[1];
    const double t18 = t9 + t11;
    const double t19 = t16 * t18;
    const double t20 = t10 * t15;
    const double t21 = t20 - t19;
    const double t26 = t17 * t17;
    const double t28 = t26 * 0.6;
    const double t29 = t21 * 0.6;
    const double t42 = t15 * 1.2857142857142856;
    const double t43 = t15 * t42;
    const double t49 = tau[1] + t29;
    const double t51 = t49 * 2.142857142857143;
    const double t55 = t15 * t51;
    const double t56 = t16 * t28;
    const double t57 = t55 - t56;
    const double t58 = tau[1] + t57;
    const double t60 = t49 * 3.571428571428571;
    const double t65 = 2.6799999999999997 - t43;
    const double t69 = 1.0 / t65;
    const double t105 = t58 - t14;
    const double t107 = tau[0] - t105;
    const double t118 = t69 * t107;
    const double t119 = t15 * t118;
    const double t121 = 2.142857142857143 * t119;
    const double t122 = t118 + t121;
    const double t123 = t60 - t122;
    a[0] = t118;
    a[1] = t123;
}
