const nums: number[] = [3, 1, 4, 1, 5, 9, 2, 6]
const res = await Promise.all([
  tools.math.mean({ numbers: nums }),
  tools.math.median({ numbers: nums })
])
console.log(res)
res.map(r => r.result.details)
