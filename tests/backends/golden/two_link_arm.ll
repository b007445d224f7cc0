@tables = global ptr null
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare double @sin(double)
declare double @cos(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)
declare <4 x double> @llvm.fma.v4f64(<4 x double>, <4 x double>, <4 x double>)
declare <4 x double> @llvm.sqrt.v4f64(<4 x double>)

@places0 = internal constant [5 x i32] [i32 12, i32 13, i32 13, i32 13, i32 13]
@blank0 = internal constant [1 x i8] [i8 0]
define internal { double, double } @psiphi.sincos.f64(double %x) nounwind {
  %s1 = bitcast double %x to i64
  %s2 = and i64 %s1, 9223372036854775807
  %s3 = icmp sgt i64 %s2, 4666723172467343360
  br i1 %s3, label %slow, label %fast
fast:
  %s4 = call double @llvm.fma.f64(double %x, double 0x3FE45F306DC9C883, double 0x4338000000000000)
  %s5 = fsub double %s4, 0x4338000000000000
  %s6 = bitcast double %s4 to i64
  %s7 = call double @llvm.fma.f64(double %s5, double 0xBFF921FB54442D18, double %x)
  %s8 = call double @llvm.fma.f64(double %s5, double 0xBC91A62633145C07, double %s7)
  %s9 = call double @llvm.fma.f64(double %s5, double 0x391F1976B7ED900B, double %s8)
  %s10 = fmul double %s9, %s9
  %s11 = fmul double %s9, %s10
  %s12 = call double @llvm.fma.f64(double 0x3DE5D8FD1FD19CCD, double %s10, double 0xBE5AE5E5A9291F5D)
  %s13 = call double @llvm.fma.f64(double %s12, double %s10, double 0x3EC71DE3567D48A1)
  %s14 = call double @llvm.fma.f64(double %s13, double %s10, double 0xBF2A01A019BFDF03)
  %s15 = call double @llvm.fma.f64(double %s14, double %s10, double 0x3F8111111110F7D0)
  %s16 = call double @llvm.fma.f64(double %s15, double %s10, double 0xBFC5555555555548)
  %s17 = call double @llvm.fma.f64(double %s11, double %s16, double %s9)
  %s18 = fmul double %s10, %s10
  %s19 = call double @llvm.fma.f64(double 0xBDA8FA49A0861A9B, double %s10, double 0x3E21EE9D7B4E3F05)
  %s20 = call double @llvm.fma.f64(double %s19, double %s10, double 0xBE927E4F7EAC4BC6)
  %s21 = call double @llvm.fma.f64(double %s20, double %s10, double 0x3EFA01A019C844F5)
  %s22 = call double @llvm.fma.f64(double %s21, double %s10, double 0xBF56C16C16C14F91)
  %s23 = call double @llvm.fma.f64(double %s22, double %s10, double 0x3FA555555555554B)
  %s24 = call double @llvm.fma.f64(double %s10, double 0xBFE0000000000000, double 0x3FF0000000000000)
  %s25 = call double @llvm.fma.f64(double %s18, double %s23, double %s24)
  %s26 = and i64 %s6, 1
  %s27 = icmp ne i64 %s26, 0
  %s28 = select i1 %s27, double %s25, double %s17
  %s29 = select i1 %s27, double %s17, double %s25
  %s30 = and i64 %s6, 2
  %s31 = shl i64 %s30, 62
  %s32 = bitcast double %s28 to i64
  %s33 = xor i64 %s32, %s31
  %s34 = bitcast i64 %s33 to double
  %s35 = add i64 %s6, 1
  %s36 = and i64 %s35, 2
  %s37 = shl i64 %s36, 62
  %s38 = bitcast double %s29 to i64
  %s39 = xor i64 %s38, %s37
  %s40 = bitcast i64 %s39 to double
  %s41 = insertvalue { double, double } poison, double %s34, 0
  %s42 = insertvalue { double, double } %s41, double %s40, 1
  ret { double, double } %s42
slow:
  %s43 = select i1 %s3, double 0x0000000000000000, double %x
  %s44 = call { double, double } @psiphi.sincos.f64(double %s43)
  %s45 = extractvalue { double, double } %s44, 0
  %s46 = extractvalue { double, double } %s44, 1
  %s47 = call double @sin(double %x)
  %s48 = select i1 %s3, double %s47, double %s45
  %s49 = call double @cos(double %x)
  %s50 = select i1 %s3, double %s49, double %s46
  %s51 = insertvalue { double, double } poison, double %s48, 0
  %s52 = insertvalue { double, double } %s51, double %s50, 1
  ret { double, double } %s52
}

define internal void @psiphi.angles.f64(ptr %first, i64 %m) nounwind {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %m
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %i, 24
  %p = getelementptr i8, ptr %first, i64 %offset
  %x = load double, ptr %p, align 8
  %both = call { double, double } @psiphi.sincos.f64(double %x)
  %s = extractvalue { double, double } %both, 0
  %c = extractvalue { double, double } %both, 1
  %ps = getelementptr i8, ptr %p, i64 8
  %pc = getelementptr i8, ptr %p, i64 16
  store double %s, ptr %ps, align 8
  store double %c, ptr %pc, align 8
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define internal void @angles.f64(ptr %frame) noinline nounwind {
  %t1 = getelementptr i8, ptr %frame, i64 0
  %t2 = load volatile double, ptr %t1, align 8
  %t3 = getelementptr i8, ptr %frame, i64 48
  store volatile double %t2, ptr %t3, align 8
  %t4 = getelementptr i8, ptr %frame, i64 8
  %t5 = load volatile double, ptr %t4, align 8
  %t6 = getelementptr i8, ptr %frame, i64 72
  store volatile double %t5, ptr %t6, align 8
  ret void
}

define internal void @part0.f64(ptr %frame) noinline nounwind {
  %t1 = getelementptr i8, ptr %frame, i64 56
  %t2 = load volatile double, ptr %t1, align 8
  %t3 = fmul double %t2, 0x40239EB851EB851F
  %t4 = getelementptr i8, ptr %frame, i64 64
  %t5 = load volatile double, ptr %t4, align 8
  %t6 = fmul double %t5, 0x40239EB851EB851F
  %t7 = getelementptr i8, ptr %frame, i64 16
  %t8 = load volatile double, ptr %t7, align 8
  %t9 = getelementptr i8, ptr %frame, i64 24
  %t10 = load volatile double, ptr %t9, align 8
  %t11 = fadd double %t8, %t10
  %t12 = call double @llvm.fma.f64(double %t8, double %t8, double %t3)
  %t13 = getelementptr i8, ptr %frame, i64 88
  %t14 = load volatile double, ptr %t13, align 8
  %t15 = fmul double %t6, %t14
  %t16 = fmul double %t14, 0x3FF4924924924924
  %t17 = fmul double %t11, %t11
  %t18 = getelementptr i8, ptr %frame, i64 80
  %t19 = load volatile double, ptr %t18, align 8
  %t20 = fneg double %t19
  %t21 = call double @llvm.fma.f64(double %t20, double %t12, double %t15)
  %t22 = fneg double %t14
  %t23 = call double @llvm.fma.f64(double %t22, double %t16, double 0x400570A3D70A3D70)
  %t24 = fmul double %t17, 0x3FE3333333333333
  %t25 = getelementptr i8, ptr %frame, i64 40
  %t26 = load volatile double, ptr %t25, align 8
  %t27 = call double @llvm.fma.f64(double %t21, double 0x3FE3333333333333, double %t26)
  %t28 = fdiv double 0x3FF0000000000000, %t23
  %t29 = fmul double %t27, 0x4001249249249249
  %t30 = fmul double %t14, %t29
  %t31 = fneg double %t19
  %t32 = call double @llvm.fma.f64(double %t31, double %t24, double %t30)
  %t33 = fadd double %t26, %t32
  %t34 = fneg double %t6
  %t35 = call double @llvm.fma.f64(double %t34, double 0x400999999999999A, double %t33)
  %t36 = getelementptr i8, ptr %frame, i64 32
  %t37 = load volatile double, ptr %t36, align 8
  %t38 = fsub double %t37, %t35
  %t39 = fmul double %t28, %t38
  %t40 = getelementptr i8, ptr %frame, i64 96
  store volatile double %t39, ptr %t40, align 8
  %t41 = fmul double %t14, %t39
  %t42 = call double @llvm.fma.f64(double 0x4001249249249249, double %t41, double %t39)
  %t43 = fneg double %t42
  %t44 = call double @llvm.fma.f64(double %t27, double 0x400C924924924924, double %t43)
  %t45 = getelementptr i8, ptr %frame, i64 104
  store volatile double %t44, ptr %t45, align 8
  ret void
}

define internal void @block.f64(ptr %frame, ptr %data) noinline nounwind {
  call void @angles.f64(ptr %frame)
  %first = getelementptr i8, ptr %frame, i64 48
  call void @psiphi.angles.f64(ptr %first, i64 2)
  call void @part0.f64(ptr %frame)
  ret void
}

define internal void @range.f64(ptr %args, ptr %steps, i64 %n, ptr %data) nounwind {
entry:
  %argp0 = getelementptr ptr, ptr %args, i64 0
  %base0 = load ptr, ptr %argp0
  %outerp0 = getelementptr i64, ptr %steps, i64 0
  %outer0 = load i64, ptr %outerp0
  %row0 = add i64 0, 0
  %column0.p = getelementptr i64, ptr %steps, i64 4
  %column0 = load i64, ptr %column0.p
  %argp1 = getelementptr ptr, ptr %args, i64 1
  %base1 = load ptr, ptr %argp1
  %outerp1 = getelementptr i64, ptr %steps, i64 1
  %outer1 = load i64, ptr %outerp1
  %row1 = add i64 0, 0
  %column1.p = getelementptr i64, ptr %steps, i64 5
  %column1 = load i64, ptr %column1.p
  %argp2 = getelementptr ptr, ptr %args, i64 2
  %base2 = load ptr, ptr %argp2
  %outerp2 = getelementptr i64, ptr %steps, i64 2
  %outer2 = load i64, ptr %outerp2
  %row2 = add i64 0, 0
  %column2.p = getelementptr i64, ptr %steps, i64 6
  %column2 = load i64, ptr %column2.p
  %argp3 = getelementptr ptr, ptr %args, i64 3
  %base3 = load ptr, ptr %argp3
  %outerp3 = getelementptr i64, ptr %steps, i64 3
  %outer3 = load i64, ptr %outerp3
  %row3 = add i64 0, 0
  %column3.p = getelementptr i64, ptr %steps, i64 7
  %column3 = load i64, ptr %column3.p
  %whole3 = mul i64 %n, 16
  %large3 = icmp ugt i64 %whole3, 6291456
  %frame = alloca [112 x i8], align 64
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = sub i64 %n, %i
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done
body:
  %full = icmp sge i64 %left, 1
  %count = select i1 %full, i64 1, i64 %left
  %jump0 = mul i64 %i, %outer0
  %at0 = getelementptr i8, ptr %base0, i64 %jump0
  %frame0 = getelementptr i8, ptr %frame, i64 0
  call void @pack.f64(ptr %at0, ptr %frame0, i64 1, i64 2, i64 %outer0, i64 %row0, i64 %column0, i64 %count, ptr null)
  %jump1 = mul i64 %i, %outer1
  %at1 = getelementptr i8, ptr %base1, i64 %jump1
  %frame1 = getelementptr i8, ptr %frame, i64 16
  call void @pack.f64(ptr %at1, ptr %frame1, i64 1, i64 2, i64 %outer1, i64 %row1, i64 %column1, i64 %count, ptr null)
  %jump2 = mul i64 %i, %outer2
  %at2 = getelementptr i8, ptr %base2, i64 %jump2
  %frame2 = getelementptr i8, ptr %frame, i64 32
  call void @pack.f64(ptr %at2, ptr %frame2, i64 1, i64 2, i64 %outer2, i64 %row2, i64 %column2, i64 %count, ptr null)
  %jump3 = mul i64 %i, %outer3
  %at3 = getelementptr i8, ptr %base3, i64 %jump3
  call void @block.f64(ptr %frame, ptr %data)
  call void @deliver.f64(ptr %at3, ptr %frame, i64 1, i64 2, i64 %outer3, i64 %row3, i64 %column3, i64 %count, ptr null, ptr @places0, ptr @blank0, i1 %large3)
  %next = add i64 %i, 1
  br label %test
done:
  
  ret void
}

define internal void @pack.f64(ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count, ptr %rest) nounwind {
entry:
  %o0 = mul i64 %outer, 0
  %l0 = getelementptr i8, ptr %array, i64 %o0
  %whole = icmp eq i64 %count, 1
  %cells = mul i64 %rows, %columns
  %dense = mul i64 %columns, 8
  %one.row = icmp eq i64 %rows, 1
  %rows.join = icmp eq i64 %row, %dense
  %columns.join = icmp eq i64 %column, 8
  %join = or i1 %one.row, %rows.join
  %flat = and i1 %join, %columns.join
  %easy = and i1 %flat, %whole
  br i1 false, label %fork, label %test
fork:
  br label %tiles
tiles:
  br label %tile
tile:
  br label %done
test:
  %cell = phi i64 [ 0, %entry ], [ %cell.next, %step ]
  %r = phi i64 [ 0, %entry ], [ %r.next, %step ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %step ]
  %more = icmp slt i64 %cell, %cells
  br i1 %more, label %body, label %done
body:
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %inside = add i64 %down, %across
  %at = add i64 %cell, 0
  %slot = mul i64 %at, 8
  %f = getelementptr i8, ptr %frame, i64 %slot
  br i1 %whole, label %all, label %some
all:
  %a0 = getelementptr i8, ptr %l0, i64 %inside
  %x0 = load double, ptr %a0, align 1
  store double %x0, ptr %f, align 8
  br label %step
some:
  %lane = phi i64 [ 0, %body ], [ %lane.next, %some ]
  %last = sub i64 %count, 1
  %beyond = icmp sgt i64 %lane, %last
  %from = select i1 %beyond, i64 %last, i64 %lane
  %jump = mul i64 %from, %outer
  %to = add i64 %jump, %inside
  %p = getelementptr i8, ptr %array, i64 %to
  %x = load double, ptr %p, align 1
  %fl = getelementptr double, ptr %f, i64 %lane
  store double %x, ptr %fl
  %lane.next = add i64 %lane, 1
  %again = icmp slt i64 %lane.next, 1
  br i1 %again, label %some, label %step
step:
  %cell.next = add i64 %cell, 1
  %c.up = add i64 %c, 1
  %wrap = icmp eq i64 %c.up, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.up
  %r.up = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.up, i64 %r
  br label %test
done:
  ret void
}

define internal void @deliver.f64(ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count, ptr %rest, ptr %places, ptr %blank, i1 %past) nounwind {
entry:
  %o0 = mul i64 %outer, 0
  %l0 = getelementptr i8, ptr %array, i64 %o0
  %whole = icmp eq i64 %count, 1
  %cells = mul i64 %rows, %columns
  %dense = mul i64 %columns, 8
  %one.row = icmp eq i64 %rows, 1
  %rows.join = icmp eq i64 %row, %dense
  %columns.join = icmp eq i64 %column, 8
  %join = or i1 %one.row, %rows.join
  %flat = and i1 %join, %columns.join
  %easy = and i1 %flat, %whole
  br i1 false, label %fork, label %test
fork:
  br label %tiles
tiles:
  br label %tile
tile:
  br label %done
test:
  %cell = phi i64 [ 0, %entry ], [ %cell.next, %step ]
  %r = phi i64 [ 0, %entry ], [ %r.next, %step ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %step ]
  %more = icmp slt i64 %cell, %cells
  br i1 %more, label %body, label %done
body:
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %inside = add i64 %down, %across
  %where = getelementptr i32, ptr %places, i64 %cell
  %found = load i32, ptr %where
  %at = zext i32 %found to i64
  %slot = mul i64 %at, 8
  %f = getelementptr i8, ptr %frame, i64 %slot
  br i1 %whole, label %all, label %some
all:
  %v = load double, ptr %f, align 8
  %a0 = getelementptr i8, ptr %l0, i64 %inside
  store double %v, ptr %a0, align 1
  br label %step
some:
  %lane = phi i64 [ 0, %body ], [ %lane.next, %some ]
  %jump = mul i64 %lane, %outer
  %to = add i64 %jump, %inside
  %p = getelementptr i8, ptr %array, i64 %to
  %fl = getelementptr double, ptr %f, i64 %lane
  %x = load double, ptr %fl
  store double %x, ptr %p, align 1
  %lane.next = add i64 %lane, 1
  %again = icmp slt i64 %lane.next, %count
  br i1 %again, label %some, label %step
step:
  %cell.next = add i64 %cell, 1
  %c.up = add i64 %c, 1
  %wrap = icmp eq i64 %c.up, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.up
  %r.up = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.up, i64 %r
  br label %test
done:
  ret void
}

define internal { <4 x double>, <4 x double> } @psiphi.sincos.v4f64(<4 x double> %x) nounwind {
  %s1 = bitcast <4 x double> %x to <4 x i64>
  %s2 = and <4 x i64> %s1, splat (i64 9223372036854775807)
  %s3 = icmp sgt <4 x i64> %s2, splat (i64 4666723172467343360)
  %s4 = bitcast <4 x i1> %s3 to i4
  %s5 = icmp ne i4 %s4, 0
  br i1 %s5, label %slow, label %fast
fast:
  %s6 = call <4 x double> @llvm.fma.v4f64(<4 x double> %x, <4 x double> splat (double 0x3FE45F306DC9C883), <4 x double> splat (double 0x4338000000000000))
  %s7 = fsub <4 x double> %s6, splat (double 0x4338000000000000)
  %s8 = bitcast <4 x double> %s6 to <4 x i64>
  %s9 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s7, <4 x double> splat (double 0xBFF921FB54442D18), <4 x double> %x)
  %s10 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s7, <4 x double> splat (double 0xBC91A62633145C07), <4 x double> %s9)
  %s11 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s7, <4 x double> splat (double 0x391F1976B7ED900B), <4 x double> %s10)
  %s12 = fmul <4 x double> %s11, %s11
  %s13 = fmul <4 x double> %s11, %s12
  %s14 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x3DE5D8FD1FD19CCD), <4 x double> %s12, <4 x double> splat (double 0xBE5AE5E5A9291F5D))
  %s15 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s14, <4 x double> %s12, <4 x double> splat (double 0x3EC71DE3567D48A1))
  %s16 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s15, <4 x double> %s12, <4 x double> splat (double 0xBF2A01A019BFDF03))
  %s17 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s16, <4 x double> %s12, <4 x double> splat (double 0x3F8111111110F7D0))
  %s18 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s17, <4 x double> %s12, <4 x double> splat (double 0xBFC5555555555548))
  %s19 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s13, <4 x double> %s18, <4 x double> %s11)
  %s20 = fmul <4 x double> %s12, %s12
  %s21 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0xBDA8FA49A0861A9B), <4 x double> %s12, <4 x double> splat (double 0x3E21EE9D7B4E3F05))
  %s22 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s21, <4 x double> %s12, <4 x double> splat (double 0xBE927E4F7EAC4BC6))
  %s23 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s22, <4 x double> %s12, <4 x double> splat (double 0x3EFA01A019C844F5))
  %s24 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s23, <4 x double> %s12, <4 x double> splat (double 0xBF56C16C16C14F91))
  %s25 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s24, <4 x double> %s12, <4 x double> splat (double 0x3FA555555555554B))
  %s26 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s12, <4 x double> splat (double 0xBFE0000000000000), <4 x double> splat (double 0x3FF0000000000000))
  %s27 = call <4 x double> @llvm.fma.v4f64(<4 x double> %s20, <4 x double> %s25, <4 x double> %s26)
  %s28 = and <4 x i64> %s8, splat (i64 1)
  %s29 = icmp ne <4 x i64> %s28, splat (i64 0)
  %s30 = select <4 x i1> %s29, <4 x double> %s27, <4 x double> %s19
  %s31 = select <4 x i1> %s29, <4 x double> %s19, <4 x double> %s27
  %s32 = and <4 x i64> %s8, splat (i64 2)
  %s33 = shl <4 x i64> %s32, splat (i64 62)
  %s34 = bitcast <4 x double> %s30 to <4 x i64>
  %s35 = xor <4 x i64> %s34, %s33
  %s36 = bitcast <4 x i64> %s35 to <4 x double>
  %s37 = add <4 x i64> %s8, splat (i64 1)
  %s38 = and <4 x i64> %s37, splat (i64 2)
  %s39 = shl <4 x i64> %s38, splat (i64 62)
  %s40 = bitcast <4 x double> %s31 to <4 x i64>
  %s41 = xor <4 x i64> %s40, %s39
  %s42 = bitcast <4 x i64> %s41 to <4 x double>
  %s43 = insertvalue { <4 x double>, <4 x double> } poison, <4 x double> %s36, 0
  %s44 = insertvalue { <4 x double>, <4 x double> } %s43, <4 x double> %s42, 1
  ret { <4 x double>, <4 x double> } %s44
slow:
  %s45 = select <4 x i1> %s3, <4 x double> splat (double 0x0000000000000000), <4 x double> %x
  %s46 = call { <4 x double>, <4 x double> } @psiphi.sincos.v4f64(<4 x double> %s45)
  %s47 = extractvalue { <4 x double>, <4 x double> } %s46, 0
  %s48 = extractvalue { <4 x double>, <4 x double> } %s46, 1
  %s49 = extractelement <4 x double> %x, i32 0
  %s50 = call double @sin(double %s49)
  %s51 = insertelement <4 x double> poison, double %s50, i32 0
  %s52 = extractelement <4 x double> %x, i32 1
  %s53 = call double @sin(double %s52)
  %s54 = insertelement <4 x double> %s51, double %s53, i32 1
  %s55 = extractelement <4 x double> %x, i32 2
  %s56 = call double @sin(double %s55)
  %s57 = insertelement <4 x double> %s54, double %s56, i32 2
  %s58 = extractelement <4 x double> %x, i32 3
  %s59 = call double @sin(double %s58)
  %s60 = insertelement <4 x double> %s57, double %s59, i32 3
  %s61 = select <4 x i1> %s3, <4 x double> %s60, <4 x double> %s47
  %s62 = extractelement <4 x double> %x, i32 0
  %s63 = call double @cos(double %s62)
  %s64 = insertelement <4 x double> poison, double %s63, i32 0
  %s65 = extractelement <4 x double> %x, i32 1
  %s66 = call double @cos(double %s65)
  %s67 = insertelement <4 x double> %s64, double %s66, i32 1
  %s68 = extractelement <4 x double> %x, i32 2
  %s69 = call double @cos(double %s68)
  %s70 = insertelement <4 x double> %s67, double %s69, i32 2
  %s71 = extractelement <4 x double> %x, i32 3
  %s72 = call double @cos(double %s71)
  %s73 = insertelement <4 x double> %s70, double %s72, i32 3
  %s74 = select <4 x i1> %s3, <4 x double> %s73, <4 x double> %s48
  %s75 = insertvalue { <4 x double>, <4 x double> } poison, <4 x double> %s61, 0
  %s76 = insertvalue { <4 x double>, <4 x double> } %s75, <4 x double> %s74, 1
  ret { <4 x double>, <4 x double> } %s76
}

define internal void @psiphi.angles.v4f64(ptr %first, i64 %m) nounwind {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %m
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %i, 96
  %p = getelementptr i8, ptr %first, i64 %offset
  %x = load <4 x double>, ptr %p, align 32
  %both = call { <4 x double>, <4 x double> } @psiphi.sincos.v4f64(<4 x double> %x)
  %s = extractvalue { <4 x double>, <4 x double> } %both, 0
  %c = extractvalue { <4 x double>, <4 x double> } %both, 1
  %ps = getelementptr i8, ptr %p, i64 32
  %pc = getelementptr i8, ptr %p, i64 64
  store <4 x double> %s, ptr %ps, align 32
  store <4 x double> %c, ptr %pc, align 32
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define internal void @angles.v4f64(ptr %frame) noinline nounwind {
  %t1 = getelementptr i8, ptr %frame, i64 0
  %t2 = load volatile <4 x double>, ptr %t1, align 32
  %t3 = getelementptr i8, ptr %frame, i64 192
  store volatile <4 x double> %t2, ptr %t3, align 32
  %t4 = getelementptr i8, ptr %frame, i64 32
  %t5 = load volatile <4 x double>, ptr %t4, align 32
  %t6 = getelementptr i8, ptr %frame, i64 288
  store volatile <4 x double> %t5, ptr %t6, align 32
  ret void
}

define internal void @part0.v4f64(ptr %frame) noinline nounwind {
  %t1 = getelementptr i8, ptr %frame, i64 224
  %t2 = load volatile <4 x double>, ptr %t1, align 32
  %t3 = fmul <4 x double> %t2, splat (double 0x40239EB851EB851F)
  %t4 = getelementptr i8, ptr %frame, i64 256
  %t5 = load volatile <4 x double>, ptr %t4, align 32
  %t6 = fmul <4 x double> %t5, splat (double 0x40239EB851EB851F)
  %t7 = getelementptr i8, ptr %frame, i64 64
  %t8 = load volatile <4 x double>, ptr %t7, align 32
  %t9 = getelementptr i8, ptr %frame, i64 96
  %t10 = load volatile <4 x double>, ptr %t9, align 32
  %t11 = fadd <4 x double> %t8, %t10
  %t12 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t8, <4 x double> %t8, <4 x double> %t3)
  %t13 = getelementptr i8, ptr %frame, i64 352
  %t14 = load volatile <4 x double>, ptr %t13, align 32
  %t15 = fmul <4 x double> %t6, %t14
  %t16 = fmul <4 x double> %t14, splat (double 0x3FF4924924924924)
  %t17 = fmul <4 x double> %t11, %t11
  %t18 = getelementptr i8, ptr %frame, i64 320
  %t19 = load volatile <4 x double>, ptr %t18, align 32
  %t20 = fneg <4 x double> %t19
  %t21 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t20, <4 x double> %t12, <4 x double> %t15)
  %t22 = fneg <4 x double> %t14
  %t23 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t22, <4 x double> %t16, <4 x double> splat (double 0x400570A3D70A3D70))
  %t24 = fmul <4 x double> %t17, splat (double 0x3FE3333333333333)
  %t25 = getelementptr i8, ptr %frame, i64 160
  %t26 = load volatile <4 x double>, ptr %t25, align 32
  %t27 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t21, <4 x double> splat (double 0x3FE3333333333333), <4 x double> %t26)
  %t28 = fdiv <4 x double> splat (double 0x3FF0000000000000), %t23
  %t29 = fmul <4 x double> %t27, splat (double 0x4001249249249249)
  %t30 = fmul <4 x double> %t14, %t29
  %t31 = fneg <4 x double> %t19
  %t32 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t31, <4 x double> %t24, <4 x double> %t30)
  %t33 = fadd <4 x double> %t26, %t32
  %t34 = fneg <4 x double> %t6
  %t35 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t34, <4 x double> splat (double 0x400999999999999A), <4 x double> %t33)
  %t36 = getelementptr i8, ptr %frame, i64 128
  %t37 = load volatile <4 x double>, ptr %t36, align 32
  %t38 = fsub <4 x double> %t37, %t35
  %t39 = fmul <4 x double> %t28, %t38
  %t40 = getelementptr i8, ptr %frame, i64 384
  store volatile <4 x double> %t39, ptr %t40, align 32
  %t41 = fmul <4 x double> %t14, %t39
  %t42 = call <4 x double> @llvm.fma.v4f64(<4 x double> splat (double 0x4001249249249249), <4 x double> %t41, <4 x double> %t39)
  %t43 = fneg <4 x double> %t42
  %t44 = call <4 x double> @llvm.fma.v4f64(<4 x double> %t27, <4 x double> splat (double 0x400C924924924924), <4 x double> %t43)
  %t45 = getelementptr i8, ptr %frame, i64 416
  store volatile <4 x double> %t44, ptr %t45, align 32
  ret void
}

define internal void @block.v4f64(ptr %frame, ptr %data) noinline nounwind {
  call void @angles.v4f64(ptr %frame)
  %first = getelementptr i8, ptr %frame, i64 192
  call void @psiphi.angles.v4f64(ptr %first, i64 2)
  call void @part0.v4f64(ptr %frame)
  ret void
}

define internal void @range.v4f64(ptr %args, ptr %steps, i64 %n, ptr %data) nounwind {
entry:
  %argp0 = getelementptr ptr, ptr %args, i64 0
  %base0 = load ptr, ptr %argp0
  %outerp0 = getelementptr i64, ptr %steps, i64 0
  %outer0 = load i64, ptr %outerp0
  %row0 = add i64 0, 0
  %column0.p = getelementptr i64, ptr %steps, i64 4
  %column0 = load i64, ptr %column0.p
  %still0 = icmp eq i64 %outer0, 0
  %argp1 = getelementptr ptr, ptr %args, i64 1
  %base1 = load ptr, ptr %argp1
  %outerp1 = getelementptr i64, ptr %steps, i64 1
  %outer1 = load i64, ptr %outerp1
  %row1 = add i64 0, 0
  %column1.p = getelementptr i64, ptr %steps, i64 5
  %column1 = load i64, ptr %column1.p
  %still1 = icmp eq i64 %outer1, 0
  %argp2 = getelementptr ptr, ptr %args, i64 2
  %base2 = load ptr, ptr %argp2
  %outerp2 = getelementptr i64, ptr %steps, i64 2
  %outer2 = load i64, ptr %outerp2
  %row2 = add i64 0, 0
  %column2.p = getelementptr i64, ptr %steps, i64 6
  %column2 = load i64, ptr %column2.p
  %still2 = icmp eq i64 %outer2, 0
  %argp3 = getelementptr ptr, ptr %args, i64 3
  %base3 = load ptr, ptr %argp3
  %outerp3 = getelementptr i64, ptr %steps, i64 3
  %outer3 = load i64, ptr %outerp3
  %row3 = add i64 0, 0
  %column3.p = getelementptr i64, ptr %steps, i64 7
  %column3 = load i64, ptr %column3.p
  %whole3 = mul i64 %n, 16
  %large3 = icmp ugt i64 %whole3, 6291456
  %frame = alloca [448 x i8], align 64
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = sub i64 %n, %i
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done
body:
  %full = icmp sge i64 %left, 4
  %count = select i1 %full, i64 4, i64 %left
  %jump0 = mul i64 %i, %outer0
  %at0 = getelementptr i8, ptr %base0, i64 %jump0
  %later0 = icmp ne i64 %i, 0
  %there0 = and i1 %still0, %later0
  %width0 = select i1 %there0, i64 0, i64 2
  %frame0 = getelementptr i8, ptr %frame, i64 0
  call void @pack.v4f64(ptr %at0, ptr %frame0, i64 1, i64 %width0, i64 %outer0, i64 %row0, i64 %column0, i64 %count, ptr @pack2.v4f64)
  %jump1 = mul i64 %i, %outer1
  %at1 = getelementptr i8, ptr %base1, i64 %jump1
  %later1 = icmp ne i64 %i, 0
  %there1 = and i1 %still1, %later1
  %width1 = select i1 %there1, i64 0, i64 2
  %frame1 = getelementptr i8, ptr %frame, i64 64
  call void @pack.v4f64(ptr %at1, ptr %frame1, i64 1, i64 %width1, i64 %outer1, i64 %row1, i64 %column1, i64 %count, ptr @pack2.v4f64)
  %jump2 = mul i64 %i, %outer2
  %at2 = getelementptr i8, ptr %base2, i64 %jump2
  %later2 = icmp ne i64 %i, 0
  %there2 = and i1 %still2, %later2
  %width2 = select i1 %there2, i64 0, i64 2
  %frame2 = getelementptr i8, ptr %frame, i64 128
  call void @pack.v4f64(ptr %at2, ptr %frame2, i64 1, i64 %width2, i64 %outer2, i64 %row2, i64 %column2, i64 %count, ptr @pack2.v4f64)
  %jump3 = mul i64 %i, %outer3
  %at3 = getelementptr i8, ptr %base3, i64 %jump3
  call void @block.v4f64(ptr %frame, ptr %data)
  call void @deliver.v4f64(ptr %at3, ptr %frame, i64 1, i64 2, i64 %outer3, i64 %row3, i64 %column3, i64 %count, ptr @deliver2.v4f64, ptr @places0, ptr @blank0, i1 %large3)
  %next = add i64 %i, 4
  br label %test
done:
  
  ret void
}

define internal void @pack.v4f64(ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count, ptr %rest) nounwind {
entry:
  %o0 = mul i64 %outer, 0
  %l0 = getelementptr i8, ptr %array, i64 %o0
  %o1 = mul i64 %outer, 1
  %l1 = getelementptr i8, ptr %array, i64 %o1
  %o2 = mul i64 %outer, 2
  %l2 = getelementptr i8, ptr %array, i64 %o2
  %o3 = mul i64 %outer, 3
  %l3 = getelementptr i8, ptr %array, i64 %o3
  %whole = icmp eq i64 %count, 4
  %cells = mul i64 %rows, %columns
  %dense = mul i64 %columns, 8
  %one.row = icmp eq i64 %rows, 1
  %rows.join = icmp eq i64 %row, %dense
  %columns.join = icmp eq i64 %column, 8
  %join = or i1 %one.row, %rows.join
  %flat = and i1 %join, %columns.join
  %easy = and i1 %flat, %whole
  br i1 %easy, label %fork, label %test
fork:
  br label %tiles
tiles:
  br label %tile
tile:
  %t = phi i64 [ 0, %tiles ], [ %t.next, %tile.body ]
  %t.bytes = mul i64 %t, 8
  %t.slot = mul i64 %t, 32
  %t.f = getelementptr i8, ptr %frame, i64 %t.slot
  %t.next = add i64 %t, 4
  %t.more = icmp sle i64 %t.next, %cells
  br i1 %t.more, label %tile.body, label %tile.rest
tile.body:
  %ta0 = getelementptr i8, ptr %l0, i64 %t.bytes
  %ta1 = getelementptr i8, ptr %l1, i64 %t.bytes
  %ta2 = getelementptr i8, ptr %l2, i64 %t.bytes
  %ta3 = getelementptr i8, ptr %l3, i64 %t.bytes
  %tp0.0 = getelementptr i8, ptr %ta0, i64 0
  %tq0.0 = load <2 x double>, ptr %tp0.0, align 8
  %tp0.1 = getelementptr i8, ptr %ta1, i64 0
  %tq0.1 = load <2 x double>, ptr %tp0.1, align 8
  %tp0.2 = getelementptr i8, ptr %ta2, i64 0
  %tq0.2 = load <2 x double>, ptr %tp0.2, align 8
  %tp0.3 = getelementptr i8, ptr %ta3, i64 0
  %tq0.3 = load <2 x double>, ptr %tp0.3, align 8
  %tj0.0.2.0 = shufflevector <2 x double> %tq0.0, <2 x double> %tq0.2, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tj0.1.2.0 = shufflevector <2 x double> %tq0.1, <2 x double> %tq0.3, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tx0.1.0 = shufflevector <4 x double> %tj0.0.2.0, <4 x double> %tj0.1.2.0, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %tx0.1.1 = shufflevector <4 x double> %tj0.0.2.0, <4 x double> %tj0.1.2.0, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %tf0 = getelementptr i8, ptr %t.f, i64 0
  store <4 x double> %tx0.1.0, ptr %tf0, align 32
  %tf1 = getelementptr i8, ptr %t.f, i64 32
  store <4 x double> %tx0.1.1, ptr %tf1, align 32
  %tp2.0 = getelementptr i8, ptr %ta0, i64 16
  %tq2.0 = load <2 x double>, ptr %tp2.0, align 8
  %tp2.1 = getelementptr i8, ptr %ta1, i64 16
  %tq2.1 = load <2 x double>, ptr %tp2.1, align 8
  %tp2.2 = getelementptr i8, ptr %ta2, i64 16
  %tq2.2 = load <2 x double>, ptr %tp2.2, align 8
  %tp2.3 = getelementptr i8, ptr %ta3, i64 16
  %tq2.3 = load <2 x double>, ptr %tp2.3, align 8
  %tj2.0.2.0 = shufflevector <2 x double> %tq2.0, <2 x double> %tq2.2, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tj2.1.2.0 = shufflevector <2 x double> %tq2.1, <2 x double> %tq2.3, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tx2.1.0 = shufflevector <4 x double> %tj2.0.2.0, <4 x double> %tj2.1.2.0, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %tx2.1.1 = shufflevector <4 x double> %tj2.0.2.0, <4 x double> %tj2.1.2.0, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %tf2 = getelementptr i8, ptr %t.f, i64 64
  store <4 x double> %tx2.1.0, ptr %tf2, align 32
  %tf3 = getelementptr i8, ptr %t.f, i64 96
  store <4 x double> %tx2.1.1, ptr %tf3, align 32
  br label %tile
tile.rest:
  %t.some = icmp slt i64 %t, %cells
  br i1 %t.some, label %tile.last, label %done
tile.last:
  %t.array = getelementptr i8, ptr %array, i64 %t.bytes
  call void %rest(ptr %t.array, ptr %t.f, i64 %outer)
  br label %done
test:
  %cell = phi i64 [ 0, %entry ], [ %cell.next, %step ]
  %r = phi i64 [ 0, %entry ], [ %r.next, %step ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %step ]
  %more = icmp slt i64 %cell, %cells
  br i1 %more, label %body, label %done
body:
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %inside = add i64 %down, %across
  %at = add i64 %cell, 0
  %slot = mul i64 %at, 32
  %f = getelementptr i8, ptr %frame, i64 %slot
  br i1 %whole, label %all, label %some
all:
  %a0 = getelementptr i8, ptr %l0, i64 %inside
  %x0 = load double, ptr %a0, align 1
  %v0 = insertelement <4 x double> poison, double %x0, i32 0
  %a1 = getelementptr i8, ptr %l1, i64 %inside
  %x1 = load double, ptr %a1, align 1
  %v1 = insertelement <4 x double> %v0, double %x1, i32 1
  %a2 = getelementptr i8, ptr %l2, i64 %inside
  %x2 = load double, ptr %a2, align 1
  %v2 = insertelement <4 x double> %v1, double %x2, i32 2
  %a3 = getelementptr i8, ptr %l3, i64 %inside
  %x3 = load double, ptr %a3, align 1
  %v3 = insertelement <4 x double> %v2, double %x3, i32 3
  store <4 x double> %v3, ptr %f, align 32
  br label %step
some:
  %lane = phi i64 [ 0, %body ], [ %lane.next, %some ]
  %last = sub i64 %count, 1
  %beyond = icmp sgt i64 %lane, %last
  %from = select i1 %beyond, i64 %last, i64 %lane
  %jump = mul i64 %from, %outer
  %to = add i64 %jump, %inside
  %p = getelementptr i8, ptr %array, i64 %to
  %x = load double, ptr %p, align 1
  %fl = getelementptr double, ptr %f, i64 %lane
  store double %x, ptr %fl
  %lane.next = add i64 %lane, 1
  %again = icmp slt i64 %lane.next, 4
  br i1 %again, label %some, label %step
step:
  %cell.next = add i64 %cell, 1
  %c.up = add i64 %c, 1
  %wrap = icmp eq i64 %c.up, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.up
  %r.up = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.up, i64 %r
  br label %test
done:
  ret void
}
define internal void @pack2.v4f64(ptr %array, ptr %t.f, i64 %outer) nounwind {
  %o0 = mul i64 %outer, 0
  %ta0 = getelementptr i8, ptr %array, i64 %o0
  %o1 = mul i64 %outer, 1
  %ta1 = getelementptr i8, ptr %array, i64 %o1
  %o2 = mul i64 %outer, 2
  %ta2 = getelementptr i8, ptr %array, i64 %o2
  %o3 = mul i64 %outer, 3
  %ta3 = getelementptr i8, ptr %array, i64 %o3
  %tp0.0 = getelementptr i8, ptr %ta0, i64 0
  %tq0.0 = load <2 x double>, ptr %tp0.0, align 8
  %tp0.1 = getelementptr i8, ptr %ta1, i64 0
  %tq0.1 = load <2 x double>, ptr %tp0.1, align 8
  %tp0.2 = getelementptr i8, ptr %ta2, i64 0
  %tq0.2 = load <2 x double>, ptr %tp0.2, align 8
  %tp0.3 = getelementptr i8, ptr %ta3, i64 0
  %tq0.3 = load <2 x double>, ptr %tp0.3, align 8
  %tj0.0.2.0 = shufflevector <2 x double> %tq0.0, <2 x double> %tq0.2, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tj0.1.2.0 = shufflevector <2 x double> %tq0.1, <2 x double> %tq0.3, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %tx0.1.0 = shufflevector <4 x double> %tj0.0.2.0, <4 x double> %tj0.1.2.0, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %tx0.1.1 = shufflevector <4 x double> %tj0.0.2.0, <4 x double> %tj0.1.2.0, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %tf0 = getelementptr i8, ptr %t.f, i64 0
  store <4 x double> %tx0.1.0, ptr %tf0, align 32
  %tf1 = getelementptr i8, ptr %t.f, i64 32
  store <4 x double> %tx0.1.1, ptr %tf1, align 32
  ret void
}

define internal void @deliver.v4f64(ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count, ptr %rest, ptr %places, ptr %blank, i1 %past) nounwind {
entry:
  %o0 = mul i64 %outer, 0
  %l0 = getelementptr i8, ptr %array, i64 %o0
  %o1 = mul i64 %outer, 1
  %l1 = getelementptr i8, ptr %array, i64 %o1
  %o2 = mul i64 %outer, 2
  %l2 = getelementptr i8, ptr %array, i64 %o2
  %o3 = mul i64 %outer, 3
  %l3 = getelementptr i8, ptr %array, i64 %o3
  %whole = icmp eq i64 %count, 4
  %cells = mul i64 %rows, %columns
  %dense = mul i64 %columns, 8
  %one.row = icmp eq i64 %rows, 1
  %rows.join = icmp eq i64 %row, %dense
  %columns.join = icmp eq i64 %column, 8
  %join = or i1 %one.row, %rows.join
  %flat = and i1 %join, %columns.join
  %easy = and i1 %flat, %whole
  br i1 %easy, label %fork, label %test
fork:
  br label %tiles
tiles:
  br label %tile
tile:
  %t = phi i64 [ 0, %tiles ], [ %t.next, %tile.body ]
  %t.bytes = mul i64 %t, 8
  %t.slot = mul i64 %t, 32
  %t.f = getelementptr i8, ptr %frame, i64 %t.slot
  %t.next = add i64 %t, 4
  %t.more = icmp sle i64 %t.next, %cells
  br i1 %t.more, label %tile.body, label %tile.rest
tile.body:
  %ta0 = getelementptr i8, ptr %l0, i64 %t.bytes
  %ta1 = getelementptr i8, ptr %l1, i64 %t.bytes
  %ta2 = getelementptr i8, ptr %l2, i64 %t.bytes
  %ta3 = getelementptr i8, ptr %l3, i64 %t.bytes
  %t.p = getelementptr i32, ptr %places, i64 %t
  %t.p0 = getelementptr i32, ptr %t.p, i64 0
  %t.i0 = load i32, ptr %t.p0
  %t.c0 = zext i32 %t.i0 to i64
  %t.b0 = mul i64 %t.c0, 32
  %t.f0 = getelementptr i8, ptr %frame, i64 %t.b0
  %t.x0 = load <4 x double>, ptr %t.f0, align 32
  %t.p1 = getelementptr i32, ptr %t.p, i64 1
  %t.i1 = load i32, ptr %t.p1
  %t.c1 = zext i32 %t.i1 to i64
  %t.b1 = mul i64 %t.c1, 32
  %t.f1 = getelementptr i8, ptr %frame, i64 %t.b1
  %t.x1 = load <4 x double>, ptr %t.f1, align 32
  %t.p2 = getelementptr i32, ptr %t.p, i64 2
  %t.i2 = load i32, ptr %t.p2
  %t.c2 = zext i32 %t.i2 to i64
  %t.b2 = mul i64 %t.c2, 32
  %t.f2 = getelementptr i8, ptr %frame, i64 %t.b2
  %t.x2 = load <4 x double>, ptr %t.f2, align 32
  %t.p3 = getelementptr i32, ptr %t.p, i64 3
  %t.i3 = load i32, ptr %t.p3
  %t.c3 = zext i32 %t.i3 to i64
  %t.b3 = mul i64 %t.c3, 32
  %t.f3 = getelementptr i8, ptr %frame, i64 %t.b3
  %t.x3 = load <4 x double>, ptr %t.f3, align 32
  %ts0.1.0 = shufflevector <4 x double> %t.x0, <4 x double> %t.x1, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %ts0.1.1 = shufflevector <4 x double> %t.x0, <4 x double> %t.x1, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %ts0.1.2 = shufflevector <4 x double> %t.x2, <4 x double> %t.x3, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %ts0.1.3 = shufflevector <4 x double> %t.x2, <4 x double> %t.x3, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %ts0.2.0 = shufflevector <4 x double> %ts0.1.0, <4 x double> %ts0.1.2, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %ts0.2.2 = shufflevector <4 x double> %ts0.1.0, <4 x double> %ts0.1.2, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %ts0.2.1 = shufflevector <4 x double> %ts0.1.1, <4 x double> %ts0.1.3, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %ts0.2.3 = shufflevector <4 x double> %ts0.1.1, <4 x double> %ts0.1.3, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %tw0.0 = getelementptr i8, ptr %ta0, i64 0
  store <4 x double> %ts0.2.0, ptr %tw0.0, align 8
  %tw0.1 = getelementptr i8, ptr %ta1, i64 0
  store <4 x double> %ts0.2.1, ptr %tw0.1, align 8
  %tw0.2 = getelementptr i8, ptr %ta2, i64 0
  store <4 x double> %ts0.2.2, ptr %tw0.2, align 8
  %tw0.3 = getelementptr i8, ptr %ta3, i64 0
  store <4 x double> %ts0.2.3, ptr %tw0.3, align 8
  br label %tile
tile.rest:
  %t.some = icmp slt i64 %t, %cells
  br i1 %t.some, label %tile.last, label %done
tile.last:
  %t.array = getelementptr i8, ptr %array, i64 %t.bytes
  call void %rest(ptr %t.array, ptr %frame, i64 %outer, ptr %places, i64 %t)
  br label %done
test:
  %cell = phi i64 [ 0, %entry ], [ %cell.next, %step ]
  %r = phi i64 [ 0, %entry ], [ %r.next, %step ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %step ]
  %more = icmp slt i64 %cell, %cells
  br i1 %more, label %body, label %done
body:
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %inside = add i64 %down, %across
  %where = getelementptr i32, ptr %places, i64 %cell
  %found = load i32, ptr %where
  %at = zext i32 %found to i64
  %slot = mul i64 %at, 32
  %f = getelementptr i8, ptr %frame, i64 %slot
  br i1 %whole, label %all, label %some
all:
  %v = load <4 x double>, ptr %f, align 32
  %a0 = getelementptr i8, ptr %l0, i64 %inside
  %x0 = extractelement <4 x double> %v, i32 0
  store double %x0, ptr %a0, align 1
  %a1 = getelementptr i8, ptr %l1, i64 %inside
  %x1 = extractelement <4 x double> %v, i32 1
  store double %x1, ptr %a1, align 1
  %a2 = getelementptr i8, ptr %l2, i64 %inside
  %x2 = extractelement <4 x double> %v, i32 2
  store double %x2, ptr %a2, align 1
  %a3 = getelementptr i8, ptr %l3, i64 %inside
  %x3 = extractelement <4 x double> %v, i32 3
  store double %x3, ptr %a3, align 1
  br label %step
some:
  %lane = phi i64 [ 0, %body ], [ %lane.next, %some ]
  %jump = mul i64 %lane, %outer
  %to = add i64 %jump, %inside
  %p = getelementptr i8, ptr %array, i64 %to
  %fl = getelementptr double, ptr %f, i64 %lane
  %x = load double, ptr %fl
  store double %x, ptr %p, align 1
  %lane.next = add i64 %lane, 1
  %again = icmp slt i64 %lane.next, %count
  br i1 %again, label %some, label %step
step:
  %cell.next = add i64 %cell, 1
  %c.up = add i64 %c, 1
  %wrap = icmp eq i64 %c.up, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.up
  %r.up = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.up, i64 %r
  br label %test
done:
  ret void
}
define internal void @deliver2.v4f64(ptr %array, ptr %frame, i64 %outer, ptr %places, i64 %t) nounwind {
  %o0 = mul i64 %outer, 0
  %ta0 = getelementptr i8, ptr %array, i64 %o0
  %o1 = mul i64 %outer, 1
  %ta1 = getelementptr i8, ptr %array, i64 %o1
  %o2 = mul i64 %outer, 2
  %ta2 = getelementptr i8, ptr %array, i64 %o2
  %o3 = mul i64 %outer, 3
  %ta3 = getelementptr i8, ptr %array, i64 %o3
  %t.p = getelementptr i32, ptr %places, i64 %t
  %t.p0 = getelementptr i32, ptr %t.p, i64 0
  %t.i0 = load i32, ptr %t.p0
  %t.c0 = zext i32 %t.i0 to i64
  %t.b0 = mul i64 %t.c0, 32
  %t.f0 = getelementptr i8, ptr %frame, i64 %t.b0
  %t.x0 = load <4 x double>, ptr %t.f0, align 32
  %t.p1 = getelementptr i32, ptr %t.p, i64 1
  %t.i1 = load i32, ptr %t.p1
  %t.c1 = zext i32 %t.i1 to i64
  %t.b1 = mul i64 %t.c1, 32
  %t.f1 = getelementptr i8, ptr %frame, i64 %t.b1
  %t.x1 = load <4 x double>, ptr %t.f1, align 32
  %ts0.1.0 = shufflevector <4 x double> %t.x0, <4 x double> %t.x1, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %ts0.1.1 = shufflevector <4 x double> %t.x0, <4 x double> %t.x1, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %tu0.0 = shufflevector <4 x double> %ts0.1.0, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %tw0.0 = getelementptr i8, ptr %ta0, i64 0
  store <2 x double> %tu0.0, ptr %tw0.0, align 8
  %tu0.1 = shufflevector <4 x double> %ts0.1.1, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %tw0.1 = getelementptr i8, ptr %ta1, i64 0
  store <2 x double> %tu0.1, ptr %tw0.1, align 8
  %tu0.2 = shufflevector <4 x double> %ts0.1.0, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %tw0.2 = getelementptr i8, ptr %ta2, i64 0
  store <2 x double> %tu0.2, ptr %tw0.2, align 8
  %tu0.3 = shufflevector <4 x double> %ts0.1.1, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %tw0.3 = getelementptr i8, ptr %ta3, i64 0
  store <2 x double> %tu0.3, ptr %tw0.3, align 8
  ret void
}

define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {
  %n = load i64, ptr %dims
  %tables = load ptr, ptr @tables
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  call void @range.f64(ptr %args, ptr %steps, i64 %n, ptr %tables)
  ret void
many:
  call void @range.v4f64(ptr %args, ptr %steps, i64 %n, ptr %tables)
  ret void
}

@quick.table = global [8 x ptr] zeroinitializer
@quick.dims0 = private constant [1 x i64] [i64 2]

define ptr @quick(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind {
entry:
  %pointers = alloca [4 x ptr]
  %steps = alloca [8 x i64]
  %one = alloca i64
  %ndarray.p = getelementptr ptr, ptr @quick.table, i64 0
  %ndarray = load ptr, ptr %ndarray.p
  %float64.p = getelementptr ptr, ptr @quick.table, i64 1
  %float64 = load ptr, ptr %float64.p
  %named = icmp ne ptr %kwnames, null
  %many = icmp ne i64 %nargs, 3
  %odd = or i1 %named, %many
  br i1 %odd, label %slow, label %next
next:
  %arg0 = getelementptr ptr, ptr %args, i64 0
  %x0 = load ptr, ptr %arg0
  %type.p0 = getelementptr i8, ptr %x0, i64 8
  %type0 = load ptr, ptr %type.p0
  %plain0 = icmp eq ptr %type0, %ndarray
  br i1 %plain0, label %array0, label %slow
  array0:
  %nd.p0 = getelementptr i8, ptr %x0, i64 24
  %nd0 = load i32, ptr %nd.p0
  %flat0 = icmp eq i32 %nd0, 1
  %descr.p0 = getelementptr i8, ptr %x0, i64 56
  %descr0 = load ptr, ptr %descr.p0
  %real0 = icmp eq ptr %descr0, %float64
  %good0 = and i1 %flat0, %real0
  br i1 %good0, label %axis0.0, label %slow
  axis0.0:
  %dims.p0 = getelementptr i8, ptr %x0, i64 32
  %dims0 = load ptr, ptr %dims.p0
  %size.p0.0 = getelementptr i64, ptr %dims0, i64 0
  %size0.0 = load i64, ptr %size.p0.0
  %long0.0 = icmp eq i64 %size0.0, 2
  br i1 %long0.0, label %next0, label %slow
  next0:
  %arg1 = getelementptr ptr, ptr %args, i64 1
  %x1 = load ptr, ptr %arg1
  %type.p1 = getelementptr i8, ptr %x1, i64 8
  %type1 = load ptr, ptr %type.p1
  %plain1 = icmp eq ptr %type1, %ndarray
  br i1 %plain1, label %array1, label %slow
  array1:
  %nd.p1 = getelementptr i8, ptr %x1, i64 24
  %nd1 = load i32, ptr %nd.p1
  %flat1 = icmp eq i32 %nd1, 1
  %descr.p1 = getelementptr i8, ptr %x1, i64 56
  %descr1 = load ptr, ptr %descr.p1
  %real1 = icmp eq ptr %descr1, %float64
  %good1 = and i1 %flat1, %real1
  br i1 %good1, label %axis1.0, label %slow
  axis1.0:
  %dims.p1 = getelementptr i8, ptr %x1, i64 32
  %dims1 = load ptr, ptr %dims.p1
  %size.p1.0 = getelementptr i64, ptr %dims1, i64 0
  %size1.0 = load i64, ptr %size.p1.0
  %long1.0 = icmp eq i64 %size1.0, 2
  br i1 %long1.0, label %next1, label %slow
  next1:
  %arg2 = getelementptr ptr, ptr %args, i64 2
  %x2 = load ptr, ptr %arg2
  %type.p2 = getelementptr i8, ptr %x2, i64 8
  %type2 = load ptr, ptr %type.p2
  %plain2 = icmp eq ptr %type2, %ndarray
  br i1 %plain2, label %array2, label %slow
  array2:
  %nd.p2 = getelementptr i8, ptr %x2, i64 24
  %nd2 = load i32, ptr %nd.p2
  %flat2 = icmp eq i32 %nd2, 1
  %descr.p2 = getelementptr i8, ptr %x2, i64 56
  %descr2 = load ptr, ptr %descr.p2
  %real2 = icmp eq ptr %descr2, %float64
  %good2 = and i1 %flat2, %real2
  br i1 %good2, label %axis2.0, label %slow
  axis2.0:
  %dims.p2 = getelementptr i8, ptr %x2, i64 32
  %dims2 = load ptr, ptr %dims.p2
  %size.p2.0 = getelementptr i64, ptr %dims2, i64 0
  %size2.0 = load i64, ptr %size.p2.0
  %long2.0 = icmp eq i64 %size2.0, 2
  br i1 %long2.0, label %next2, label %slow
  next2:
  %PyArray_New.p = getelementptr ptr, ptr @quick.table, i64 2
  %PyArray_New = load ptr, ptr %PyArray_New.p
  %out0 = call ptr %PyArray_New(ptr %ndarray, i32 1, ptr @quick.dims0, i32 12, ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed0 = icmp eq ptr %out0, null
  br i1 %failed0, label %nothing, label %made0
  made0:
  %out.data.p0 = getelementptr i8, ptr %out0, i64 16
  %out.data0 = load ptr, ptr %out.data.p0
  %out.slot0 = getelementptr ptr, ptr %pointers, i64 3
  store ptr %out.data0, ptr %out.slot0
  %out.core0.0 = getelementptr i64, ptr %steps, i64 7
  store i64 8, ptr %out.core0.0
  br label %run
run:
  %data.p0 = getelementptr i8, ptr %x0, i64 16
  %data0 = load ptr, ptr %data.p0
  %slot0 = getelementptr ptr, ptr %pointers, i64 0
  store ptr %data0, ptr %slot0
  %strides.p0 = getelementptr i8, ptr %x0, i64 40
  %strides0 = load ptr, ptr %strides.p0
  %stride.p0.0 = getelementptr i64, ptr %strides0, i64 0
  %stride0.0 = load i64, ptr %stride.p0.0
  %core0.0 = getelementptr i64, ptr %steps, i64 4
  store i64 %stride0.0, ptr %core0.0
  %data.p1 = getelementptr i8, ptr %x1, i64 16
  %data1 = load ptr, ptr %data.p1
  %slot1 = getelementptr ptr, ptr %pointers, i64 1
  store ptr %data1, ptr %slot1
  %strides.p1 = getelementptr i8, ptr %x1, i64 40
  %strides1 = load ptr, ptr %strides.p1
  %stride.p1.0 = getelementptr i64, ptr %strides1, i64 0
  %stride1.0 = load i64, ptr %stride.p1.0
  %core1.0 = getelementptr i64, ptr %steps, i64 5
  store i64 %stride1.0, ptr %core1.0
  %data.p2 = getelementptr i8, ptr %x2, i64 16
  %data2 = load ptr, ptr %data.p2
  %slot2 = getelementptr ptr, ptr %pointers, i64 2
  store ptr %data2, ptr %slot2
  %strides.p2 = getelementptr i8, ptr %x2, i64 40
  %strides2 = load ptr, ptr %strides.p2
  %stride.p2.0 = getelementptr i64, ptr %strides2, i64 0
  %stride2.0 = load i64, ptr %stride.p2.0
  %core2.0 = getelementptr i64, ptr %steps, i64 6
  store i64 %stride2.0, ptr %core2.0
  store i64 1, ptr %one
  call void @loop(ptr %pointers, ptr %one, ptr %steps, ptr null)
  ret ptr %out0

nothing:
  ret ptr null
slow:
  %PyObject_Vectorcall.p = getelementptr ptr, ptr @quick.table, i64 4
  %PyObject_Vectorcall = load ptr, ptr %PyObject_Vectorcall.p
  %answer = call ptr %PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}
