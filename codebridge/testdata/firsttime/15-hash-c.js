return (await openclaw.tools.call('hash_text', JSON.stringify({ text: 'hello', algorithm: 'md5' }))).result.details
