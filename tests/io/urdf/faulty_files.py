"""A corpus of files that are no URDF at all, and of meshes that lie outside their package."""

from tests.io.urdf.faulty_urdf import ROBOT

BOMB = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>'
EXTERNAL = (
    '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r"><link '
    'name="&x;"/></robot>'
)
QUADRATIC = f'<!DOCTYPE r [<!ENTITY a "{"x" * 50000}">]><robot name="r">{"&a;" * 5000}</robot>'

# (name, the whole file, words that the message has)
DOCUMENTS: list[tuple[str, str | bytes, str]] = [
    ("empty", "", "empty"),
    ("white space", " \n\t\n ", "empty"),
    ("byte order mark alone", b"\xef\xbb\xbf", "empty"),
    ("prose", "this is my robot", "not XML"),
    ("json", '{"robot": 1}', "JSON"),
    ("yaml", "robot: r", "not XML"),
    ("zip", b"PK\x03\x04abc", "zip"),
    ("gzip", b"\x1f\x8b\x08\x00abc", "gzip"),
    ("lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    ("stl", "solid arm\nfacet", "STL"),
    ("truncated in a link", ROBOT[:300], "well-formed"),
    ("truncated in a number", ROBOT[: ROBOT.index("2.5") + 2], "well-formed"),
    ("truncated at the end", ROBOT.rstrip()[:-3], "well-formed"),
    ("only a declaration", '<?xml version="1.0"?>', "no element found"),
    ("mismatched tag", '<robot name="r"><link name="a"></robot>', "mismatched tag"),
    ("attribute not closed", '<robot name="r><link name="a"/></robot>', "well-formed"),
    ("attribute twice", '<robot name="r"><link name="a" name="b"/></robot>', "duplicate attribute"),
    ("undefined entity", '<robot name="r"><link name="&x;"/></robot>', "undefined entity"),
    ("bare ampersand", '<robot name="a & b"><link name="a"/></robot>', "well-formed"),
    ("two documents", '<robot name="r"><link name="a"/></robot><robot/>', "junk after"),
    ("text after", '<robot name="r"><link name="a"/></robot> more', "well-formed"),
    ("doctype", '<!DOCTYPE robot><robot name="r"><link name="a"/></robot>', "DOCTYPE"),
    ("entity bomb", BOMB, "DOCTYPE"),
    ("external entity", EXTERNAL, "DOCTYPE"),
    ("quadratic bomb", QUADRATIC, "DOCTYPE"),
    ("deep nesting", '<robot name="r">' + "<a>" * 100_000, "deeper than 512"),
    ("NUL", b'<robot name="r"><link name="a\x00"/></robot>', "well-formed"),
    ("bad UTF-8", b'<robot name="r\xff\xfe"/>', "well-formed"),
    ("unknown encoding", '<?xml version="1.0" encoding="klingon"?><robot name="r"/>', "encoding"),
    ("wide encoding", '<?xml version="1.0" encoding="utf-32"?><robot name="r"/>', "encoding"),
    ("UTF-16 cut short", '<robot name="r"/>'.encode("utf-16")[:-3], "well-formed"),
    (
        "UTF-16 declared as UTF-8",
        '<?xml version="1.0" encoding="utf-8"?><robot name="r"/>'.encode("utf-16"),
        "encoding",
    ),
    ("sdf", '<sdf version="1.7"><model name="m"/></sdf>', "SDF"),
    ("mjcf", '<mujoco model="m"/>', "MJCF"),
    ("collada", "<COLLADA/>", "COLLADA"),
    ("web page", "<html><body>404</body></html>", "web page"),
    ("launch file", "<launch/>", "launch"),
    ("package.xml", "<package/>", "package.xml"),
    ("other root", "<thing/>", "<thing>"),
    ("no links", '<robot name="r"/>', "no <link>"),
    (
        "xacro file",
        '<robot name="r" xmlns:xacro="x"><xacro:include filename="a.xacro"/></robot>',
        "run xacro first",
    ),
]

# (name, a mesh outside the package; TMP is the folder above it)
MESHES: list[tuple[str, str]] = [
    ("one up", "../secret.stl"),
    ("up in the middle", "meshes/../../secret.stl"),
    ("absolute", "TMP/secret.stl"),
    ("etc", "/etc/passwd"),
    ("file url", "file://TMP/secret.stl"),
    ("file url, one slash", "file:/etc/passwd"),
    ("file url upper case", "FILE:///etc/passwd"),
    ("up in a package", "package://pkg/../secret.stl"),
    ("package of dots", "package://../secret.stl"),
    ("unknown package, up", "package://other/a/../../../secret.stl"),
    ("percent", "%2e%2e/secret.stl"),
    ("percent twice", "package://pkg/%252e%252e/secret.stl"),
    ("backslash", "..\\secret.stl"),
    ("drive", "C:\\secret.stl"),
    ("share", "\\\\server\\secret.stl"),
    ("home", "~/secret.stl"),
    ("variable", "$HOME/secret.stl"),
    ("web", "https://example.org/secret.stl"),
    ("white space before", "  ../secret.stl"),
    ("link that leads out", "link.stl"),
]
