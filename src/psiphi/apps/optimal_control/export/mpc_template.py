"""The iteration of the solver in C: that of `ddp_solver.py` and `receding_horizon.py`, for one
problem with the Gauss-Newton Hessian.

The number of operations does not depend on the numbers: an iteration that is not needed runs, and
its result is dropped.
"""

ITERATION = """\
static void {name}_copy(double *to, const double *from, int count)
{{
    for (int i = 0; i < count; ++i) {{
        to[i] = from[i];
    }}
}}

/* The motion with u + alpha k + K dx from q2[0], v2[0] into q2, v2, u2; its cost. */
static double {name}_follow({name}_plan *s, double alpha{given})
{{
    double cost = 0.0;
    {take};
    return cost;
}}

/* to = use ? from : to, with the same work in both cases */
static void {name}_select(double *to, const double *from, int count, int use)
{{
    for (int i = 0; i < count; ++i) {{
        const double x = from[i], y = to[i];
        to[i] = use ? x : y;
    }}
}}

static void {name}_accept({name}_plan *s, double cost, int use)
{{
    {name}_select(s->q, s->q2, ({steps} + 1) * {nq}, use);
    {name}_select(s->v, s->v2, ({steps} + 1) * {nv}, use);
    {name}_select(s->u, s->u2, {steps} * {nu}, use);
    s->cost = use ? cost : s->cost;
}}

/* k and K at the motion; the expected decrease of the cost. */
static double {name}_gains({name}_plan *s, double damping{given})
{{
    double decrease = 0.0, residual = 0.0;
    {backward};
    s->residual = sqrt(residual);
    return decrease;
}}

static int {name}_is_finite(const double *x, int count)
{{
    int finite = 1;
    for (int i = 0; i < count; ++i) {{
        finite &= isfinite(x[i]) ? 1 : 0;
    }}
    return finite;
}}

static void {name}_iterate({name}_plan *s, int *failures, int *done{given})
{{
    static const double lengths[{candidates}] = {{{lengths}}};
    const double old = s->cost, size = fabs(old) + 1e-12;
    double costs[{candidates}];
    const double decrease = {name}_gains(s, s->damping{passed});
    int best = 0;
    {look};
    for (int i = 0; i < {candidates}; ++i) {{
        costs[i] = isfinite(costs[i]) ? costs[i] : HUGE_VAL;
        best = (costs[i] < costs[best]) ? i : best;
    }}
    const double alpha = lengths[best];
    {name}_copy(s->q2, s->q, {nq});
    {name}_copy(s->v2, s->v, {nv});
    const double cost = {name}_follow(s, alpha{passed});
    const int flawed = !isfinite(decrease);
    const int finite = {name}_is_finite(&s->q2[{steps} * {nq}], {nq})
        & {name}_is_finite(&s->v2[{steps} * {nv}], {nv}) & (isfinite(cost) ? 1 : 0);
    const int lower = costs[best] < old - (1e-14 * fabs(old));
    const int better = !*done && !flawed && finite && lower;
    const double drop = better ? old - costs[best] : 0.0;
    const int small = !flawed && (decrease <= {tolerance} * size);
    const int slow = better && (drop <= {tolerance} * size) && (alpha >= 0.5);
    const int finished = (s->damping < {settled}) && (small || slow);
    double factor = {growth};
    for (int i = 0; i < {fastest} - 1; ++i) {{
        factor *= (i < *failures) ? {growth} : 1.0;
    }}
    {name}_accept(s, cost, better);
    const double larger = (s->damping > {first_damping}) ? s->damping : {first_damping};
    const double less = s->damping / {decay};
    const double smaller = (less > {least_damping}) ? less : {least_damping};
    const double after_step = (alpha >= {long}) ? smaller : s->damping;
    const double after_this = better ? after_step : larger * factor;
    s->damping = *done ? s->damping : after_this;
    *failures = better ? 0 : *failures + 1;
    *done = *done || finished || (s->damping > {largest_damping});
}}

static int {name}_solve({name}_plan *s, int iterations, double *u{given})
{{
    int failures = 0, done = 0;
    for (int i = 0; i < iterations; ++i) {{
        {name}_iterate(s, &failures, &done{passed});
    }}
    {name}_gains(s, 0.0{passed});
    {name}_copy(u, s->u, {nu});
    return isfinite(s->cost) ? 1 : 0;
}}

int {name}_start({name}_plan *s, const double *q, const double *v, const double *torques{goals},
    double *u)
{{
    {name}_goals(s{goal_names});
    for (int i = 0; i < {steps} * {nu}; ++i) {{
        s->k[i] = 0.0;
    }}
    for (int i = 0; i < {steps} * {nu} * 2 * {nv}; ++i) {{
        s->K[i] = 0.0;
    }}
    for (int i = 0; i <= {steps}; ++i) {{
        {name}_copy(&s->q[i * {nq}], q, {nq});
        {name}_copy(&s->v[i * {nv}], v, {nv});
    }}
    {name}_copy(s->u, torques, {steps} * {nu});
    {name}_copy(s->q2, q, {nq});
    {name}_copy(s->v2, v, {nv});
    const double cost = {name}_follow(s, 0.0{passed});
    {name}_accept(s, cost, 1);
    s->damping = {first_damping};
    return {name}_solve(s, {first}, u{passed});
}}

int {name}_step({name}_plan *s, const double *q, const double *v, int passed{goals}, double *u)
{{
    const int shift = (passed < 0) ? 0 : ((passed > {steps}) ? {steps} : passed);
    {name}_goals(s{goal_names});
    for (int i = 0; i <= {steps}; ++i) {{
        const int from = (i + shift > {steps}) ? {steps} : i + shift;
        {name}_copy(&s->q[i * {nq}], &s->q[from * {nq}], {nq});
        {name}_copy(&s->v[i * {nv}], &s->v[from * {nv}], {nv});
    }}
    for (int i = 0; i < {steps}; ++i) {{
        const int from = (i + shift > {steps} - 1) ? {steps} - 1 : i + shift;
        {name}_copy(&s->u[i * {nu}], &s->u[from * {nu}], {nu});
        {name}_copy(&s->K[i * {nu} * 2 * {nv}], &s->K[from * {nu} * 2 * {nv}], {nu} * 2 * {nv});
    }}
    {name}_copy(s->q2, q, {nq});
    {name}_copy(s->v2, v, {nv});
    const double cost = {name}_follow(s, 0.0{passed});
    {name}_accept(s, cost, 1);
    return {name}_solve(s, {iterations}, u{passed});
}}
"""

TEST = """\
/* Test of {name}: torques of a simulation, beside those that psiphi computed; returns 0 if they
 * agree. */
#include "{name}.h"
#include <math.h>
#include <stdio.h>

{tables}

int main(void)
{{
    static {name}_plan plan;
    double most = 0.0, size = 1.0;
    int fine = 1;
    for (int i = 0; i < {cases}; ++i) {{
        double u[{nu}];
        const double *q = &test_q[i * {nq}], *v = &test_v[i * {nv}];
        fine &= (i == 0) ? {name}_start(&plan, q, v, test_torques{arguments}, u)
                         : {name}_step(&plan, q, v, 1{arguments}, u);
        for (int j = 0; j < {nu}; ++j) {{
            const double right = test_u[(i * {nu}) + j], error = fabs(u[j] - right);
            if (!(error <= most)) most = error;
            if (fabs(right) > size) size = fabs(right);
        }}
    }}
    printf("largest error %.3g of %.3g\\n", most, size);
    return (fine && (most <= {tolerance} * size)) ? 0 : 1;
}}
"""
