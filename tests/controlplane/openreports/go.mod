module suture.dev/openreports

go 1.24.2

require github.com/openreports/reports-api v0.2.1
