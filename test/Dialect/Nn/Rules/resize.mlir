// Rules of resampling: a dim is split where it is left alone, or repeated; else together with that of the input.
//
// RUN: cleave-opt %s --spmd-print-rules --verify-diagnostics

func.func @nearest_upscaling_by_an_integer_is_local(%x: tensor<1x3x8x8xf32>) {
  // expected-remark-re @below {{([1,i,j,l])->([1,i,jk,lm]) {i=3,j=8,k=2,l=8,m=3} replicate={k,m}{{$}}}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 3.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x16x24xf32>
  // expected-remark-re @below {{([1,i,j,l])->([1,i,jk,lm]) {i=3,j=8,k=2,l=8,m=3} replicate={k,m}{{$}}}}
  %1 = nn.resize nearest %x coordinates half_pixel rounding round_prefer_floor scales [1.0, 1.0, 2.0, 3.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x16x24xf32>
  return
}

func.func @rounding_decides_what_is_nearest(%x: tensor<1x3x8x8xf32>) {
  // 2 / 3 is nearest to 1, in the next shard; (0 + 0.5) / 2 - 0.5 lies below 0, in the shard before.
  // expected-remark-re @below {{([1,i,k,l])->([1,i,j,l]) {i=3,j=24,k=8,l=8} exchange={k>j}{{$}}}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding round_prefer_floor scales [1.0, 1.0, 3.0, 1.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x24x8xf32>
  // expected-remark-re @below {{([1,i,k,l])->([1,i,j,l]) {i=3,j=16,k=8,l=8} exchange={k>j}{{$}}}}
  %1 = nn.resize nearest %x coordinates half_pixel rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x16x8xf32>
  return
}

func.func @other_samples_come_from_neighbors(%x: tensor<1x3x8x8xf32>) {
  // Rounding i / 2 up reaches into the next shard; so does interpolation. By a scale that is not an integer the nearest is another one
  // on another shard, which tables say.
  // expected-remark-re @below {{([1,i,k,l])->([1,i,j,l]) {i=3,j=16,k=8,l=8} exchange={k>j}{{$}}}}
  %0 = nn.resize nearest %x coordinates asymmetric rounding ceil scales [1.0, 1.0, 2.0, 1.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x16x8xf32>
  // expected-remark-re @below {{([1,i,k,l])->([1,i,j,l]) {i=3,j=16,k=8,l=8} exchange={k>j}{{$}}}}
  %1 = nn.resize linear %x coordinates half_pixel rounding floor scales [1.0, 1.0, 2.0, 1.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x16x8xf32>
  // expected-remark-re @below {{([1,i,k,l])->([1,i,j,l]) {i=3,j=12,k=8,l=8} exchange={k>j}{{$}}}}
  %2 = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 1.5, 1.0] : (tensor<1x3x8x8xf32>) -> tensor<1x3x12x8xf32>
  return
}

func.func @ranks_sample_alike_or_by_tables(%x: tensor<12xf32>, %n: tensor<12xi32>) {
  // Two of three: alike after whole periods. With aligned corners, or scales that are not the ratio, there are none, and each rank
  // has its own coordinates.
  // expected-remark-re @below {{([j])->([i]) {i=18,j=12} exchange={j>i}{{$}}}}
  %0 = nn.resize cubic %x coordinates half_pixel rounding floor scales [1.5] : (tensor<12xf32>) -> tensor<18xf32>
  // expected-remark-re @below {{([j])->([i]) {i=24,j=12} exchange={j>i}{{$}}}}
  %1 = nn.resize linear %x coordinates align_corners rounding floor scales [2.0] : (tensor<12xf32>) -> tensor<24xf32>
  // expected-remark-re @below {{([j])->([i]) {i=24,j=12} exchange={j>i}{{$}}}}
  %2 = nn.resize linear %x coordinates half_pixel rounding floor scales [2.05] : (tensor<12xf32>) -> tensor<24xf32>
  return
}

func.func @what_cannot_be_cut_together_is_whole(%x: tensor<12xf32>, %n: tensor<12x12xi32>) {
  // Nothing divides 12 and 25.
  // expected-remark @below {{must_replicate="samples between the shards of every dim would be needed"}}
  %0 = nn.resize linear %x coordinates align_corners rounding floor scales [2.1] : (tensor<12xf32>) -> tensor<25xf32>
  // Sums of integers are rounded once: tables may make terms of the first dim alone, whose sums the op takes on as they are.
  // expected-remark @below {{([j,k])->([i,l]) {i=24,j=12,k=12,l=24} replicate={k,l} exchange={j>i}}}
  %1 = nn.resize linear %n coordinates align_corners rounding floor scales [2.0, 2.0] : (tensor<12x12xi32>) -> tensor<24x24xi32>
  // A result of which every part is made of the first quarter.
  // expected-remark @below {{must_replicate="samples between the shards of every dim would be needed"}}
  %2 = nn.resize linear %x coordinates asymmetric rounding floor scales [8.0] : (tensor<12xf32>) -> tensor<24xf32>
  return
}
