"""How a loop of one input and one output begins, as LLVM text: its numbers, its pointers and its
steps in bytes."""

BEGIN = """
define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
entry:
  %n = load i64, ptr %dims
  %in = load ptr, ptr %args
  %out.at = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %out.at
  %s = load <4 x i64>, ptr %steps, align 8
  %in.step = extractelement <4 x i64> %s, i32 0
  %out.step = extractelement <4 x i64> %s, i32 1
  %in.core = extractelement <4 x i64> %s, i32 2
  %out.core = extractelement <4 x i64> %s, i32 3
"""
