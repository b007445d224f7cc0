"""The local steps of matrix-valued quantities: columns travel tip to base, one 6-vector a degree of freedom below.

M(k, j)      = H_k phi(k, j) r(j) H_j*               r: composite inertia
L(k, j)      = H_k phi(k, p(j)) K_j                  L = I + H phi K, M = L D L*
M^-1(k, j)   = d_k psi(k, p(j)) K_j                  and K_i* psi* Om(a) psi K_j for unrelated i, j (a: nearest
                                                     common ancestor), theory.md section 4
"""

from __future__ import annotations

from psiphi.functions.steps import EYE3, ZERO3, articulate, from_entries
from psiphi.spatial import dense
from psiphi.spatial.screws import Inertia, add, coinertia, dot, force, pose, rotate, second_moment
from psiphi.sweeps.program import Site


class Columns(dict):
    """{velocity coordinate: spatial vector}; messages from different children do not overlap."""

    def __add__(self, other: Columns) -> Columns:
        return Columns({**self, **other})


def _put(site: Site, name: str, r: int, c: int, value) -> None:
    """Entry (r, c) and, for symmetric outputs, (c, r)."""
    site.write(name, r * site.nv + c, [value])


def _own(site: Site) -> range:
    own = site.slices["v"]
    return range(own.start, own.stop)


def composite(site: Site) -> None:
    """Tip to base: r(k) = M(k) + sum phi r(c) phi* as (mass, first, second moment); the mass matrix's rows on the way."""
    link, below = site.link, site.children
    mass, moment, J = link.mass, link.moment, link.pseudo
    if "mass" in below:
        mass, moment = mass + below["mass"][0], add(moment, below["moment"])
        J = _symmetric([[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(J, below["second"].A, strict=True)])
    columns = Columns(below.get("columns", {}))
    r = _rigid(mass, moment, J)
    for i, h in zip(_own(site), site.H, strict=True):
        columns[i] = r @ h
    for i, (h, rotor) in zip(_own(site), zip(site.H, link.armature, strict=True), strict=True):
        for j, y in columns.items():
            value = dot(h, y) + rotor if i == j else dot(h, y)
            _put(site, "M", i, j, value)
            _put(site, "M", j, i, value)
    l = pose(site.path, EYE3, ZERO3)[1]
    p = rotate(site.path, moment)
    shifted = second_moment(site.path, J)
    lp = [[shifted[r][c] + l[r] * p[c] + l[c] * p[r] + mass * (l[r] * l[c]) for c in range(3)] for r in range(3)]
    site.send(
        mass=[mass],
        moment=[x + mass * y for x, y in zip(p, l, strict=True)],
        second=Block(_symmetric(lp)),
        columns=Columns({j: force(site.path, y) for j, y in columns.items()}),
    )


class Block:
    """A 3x3 matrix that adds entry by entry."""

    def __init__(self, A):
        self.A = A

    def __add__(self, other: Block) -> Block:
        return Block(_symmetric([[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(self.A, other.A, strict=True)]))


def _symmetric(A) -> list:
    return [[A[min(r, c)][max(r, c)] for c in range(3)] for r in range(3)]


def _rigid(m, p, J) -> Inertia:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
    return Inertia(
        [[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]],
        [[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]],
        [[m, 0.0, 0.0], [0.0, m, 0.0], [0.0, 0.0, m]],
    )


def innovations_factor(site: Site) -> None:
    """Tip to base: L's columns K_j climb with phi; D(k) goes to the diagonal."""
    articulate(site)
    gain = site.kept["gain"]
    columns = site.children.get("columns", {})
    for i, h in zip(_own(site), site.H, strict=True):
        _put(site, "L", i, i, 1.0)
        for j, y in columns.items():
            _put(site, "L", i, j, dot(h, y))
        for n, k in enumerate(_own(site)):
            _put(site, "D", i, k, gain.D[i - _own(site).start][n])
    own = {i: [row[n] for row in gain.G] for n, i in enumerate(_own(site))}
    site.send(columns=Columns({j: force(site.path, y) for j, y in (own | dict(columns)).items()}))


def climb_with_psi(site: Site) -> None:
    """Tip to base: y_j(k) = psi(k, p(j)) K_j for every coordinate j below, kept for the way out."""
    articulate(site)
    gain = site.kept["gain"]
    columns = site.children.get("columns", Columns())
    site.keep(below=columns, groups=site.children.get("groups", []))
    passed = {j: _through(gain, site.H, y) for j, y in columns.items()}
    own = {i: [row[n] for row in gain.G] for n, i in enumerate(_own(site))}
    site.send(columns=Columns({j: force(site.path, y) for j, y in (own | passed).items()}))
    site.send(groups=Groups([list(own) + list(passed)]))


class Groups(list):
    """Coordinates by child subtree: pairs across groups have their nearest common ancestor here."""

    def __add__(self, other):
        return Groups(list(self) + list(other))


def _through(gain, H, y) -> list:
    """tau_bar y = y - G H y."""
    Hy = dense.apply(H, y)
    return [0.0 if r in gain.closed else y[r] - dot(gain.G[r], Hy) for r in range(6)]


def inverse_rows(site: Site) -> None:
    """Base to tip: Om(k) = tau_bar* LamP tau_bar + H* D^-1 H, and the rows of M^-1 that end at this body."""
    gain, H = site.kept["gain"], site.H
    up = site.parent.get("Om")
    n = len(H)
    D_inv = [dense.solve(gain.factors, [1.0 if i == j else 0.0 for j in range(n)]) for i in range(n)]
    LamP = None if up is None else coinertia(site.path, up)
    g = [[row[i] for row in gain.G] for i in range(n)]
    LG = [[0.0] * 6 for _ in g] if LamP is None else [LamP @ x for x in g]
    c = [[D_inv[i][j] + dot(g[i], LG[j]) for j in range(n)] for i in range(n)]
    cH = [[dot([c[i][m] for m in range(n)], [H[m][r] for m in range(n)]) for r in range(6)] for i in range(n)]
    d = [[x - y for x, y in zip(LG[i], cH[i], strict=True)] for i in range(n)]
    own, below = _own(site), site.kept["below"]
    for i in own:
        for j in own:
            _put(site, "M_inv", i, j, c[min(i, j) - own.start][max(i, j) - own.start])
        for j, y in below.items():
            value = dot(d[i - own.start], y)
            _put(site, "M_inv", i, j, value)
            _put(site, "M_inv", j, i, value)
    Om = _compliance(LamP, gain, H, D_inv, LG, c)
    site.keep(Om=Om)
    _across(site, Om, below)


def _compliance(LamP, gain, H, D_inv, LG, c) -> Inertia:
    """Om = LamP - LG H - (LG H)* + H* c H, that is, tau_bar* LamP tau_bar + H* D^-1 H."""
    n = len(H)
    entry = {}
    for r in range(6):
        for s in range(r, 6):
            value = 0.0 if LamP is None else LamP.entry(r, s)
            for i in range(n):
                value = value - LG[i][r] * H[i][s] - H[i][r] * LG[i][s]
                value = value + H[i][r] * dot([c[i][m] for m in range(n)], [H[m][s] for m in range(n)])
            entry[r, s] = entry[s, r] = value
    return from_entries(entry)


def _across(site: Site, Om: Inertia, below: Columns) -> None:
    """Pairs whose nearest common ancestor is this body: y_i* Om y_j."""
    groups = site.kept.get("groups", [])
    for n, group in enumerate(groups):
        for i in group if n + 1 < len(groups) else ():
            z = Om @ below[i]
            for other in groups[n + 1 :]:
                for j in other:
                    value = dot(z, below[j])
                    _put(site, "M_inv", i, j, value)
                    _put(site, "M_inv", j, i, value)


def innovations_product(site: Site) -> None:
    """Tip to base: y = x + H z, z = sum phi (z_c + G_c x_c); and D x."""
    articulate(site)
    gain, x = site.kept["gain"], site.of("x")
    z = site.children.get("z")
    Hz = [0.0] * len(x) if z is None else dense.apply(site.H, z)
    site.write_joint("y", add(x, Hz))
    site.write_joint("d", dense.apply(gain.D, x))
    own = dense.apply(gain.G, x)
    site.send(z=force(site.path, own if z is None else add(own, z)))
