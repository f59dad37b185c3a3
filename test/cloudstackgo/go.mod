// The simulated CloudStack is held against a client that was not written here. A module of its own, so that nothing else
// depends on that client.
module github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/cloudstackgo

go 1.26.0

replace github.com/cluster-api-provider-vcd/cluster-api-provider-vcd => ../..

require (
	github.com/apache/cloudstack-go/v2 v2.19.0
	github.com/cluster-api-provider-vcd/cluster-api-provider-vcd v0.0.0-00010101000000-000000000000
	github.com/onsi/gomega v1.42.1
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	go.uber.org/mock v0.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
