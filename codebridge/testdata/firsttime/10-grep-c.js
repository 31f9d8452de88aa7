tools.call("grep_files", {text: "the", ignore_case: true}).then(r => r.result.details)
