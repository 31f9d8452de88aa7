const tool = (await openclaw.tools.search("factor integer into primes"))[0];
const numbers = [84, 97, 1001];
const results = await Promise.allSettled(numbers.map(n => openclaw.tools.call(tool.id, { n })));
return results.map((r, i) => r.status === "fulfilled" ? { n: numbers[i], factors: r.value.result.details } : { n: numbers[i], error: r.reason.message });
