module github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/recording

go 1.26.0

tool github.com/mrmarble/termsvg/cmd/termsvg

require (
	github.com/creack/pty v1.1.24
	github.com/onsi/gomega v1.42.1
)

require (
	github.com/alecthomas/kong v1.12.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/hinshun/vt10x v0.0.0-20220301184237-5011da428d02 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/mrmarble/termsvg v0.11.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/schollz/progressbar/v3 v3.19.0 // indirect
	github.com/tdewolff/minify/v2 v2.23.8 // indirect
	github.com/tdewolff/parse/v2 v2.8.1 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/image v0.35.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
	golang.org/x/term v0.44.0 // indirect
	golang.org/x/text v0.38.0 // indirect
)
