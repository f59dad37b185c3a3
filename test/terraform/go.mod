module github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/terraform

go 1.26.0

replace (
	github.com/cluster-api-provider-vcd/cluster-api-provider-vcd => ../..
	github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test => ../
)

require (
	github.com/cluster-api-provider-vcd/cluster-api-provider-vcd v0.0.0
	github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test v0.0.0-00010101000000-000000000000
	github.com/google/go-cmp v0.7.0
	github.com/onsi/gomega v1.42.1
)

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/term v0.45.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
