// SPDX-License-Identifier: Apache-2.0

// Package cloudstackconfig is the schema of the cloud controller manager's configuration for Apache CloudStack. It
// contains every key of the original controller's cloud-config, and more. The comments of the fields are the text of
// docs/reference/cloudstack-config.md. The tag "legacy" marks the keys of the original controller.
package cloudstackconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// Config is the content of the file.
type Config struct {
	Global       Global       `json:"global"`
	LoadBalancer LoadBalancer `json:"loadbalancer,omitzero"`
}

// Global configures the cluster and the access to CloudStack.
type Global struct {
	// Address of the CloudStack API. Required.
	APIURL string `json:"api-url" kind:"URL" legacy:"true" required:"set an address such as https://cloud.example.com/client/api"`
	// API key of the user. Required.
	APIKey string `json:"api-key" legacy:"true" required:"set the API key of the user"`
	// Secret key of the user. Required.
	SecretKey ccmconfig.Secret `json:"secret-key" legacy:"true" required:"set the secret key of the user"`
	// Project of the cluster; the account of the user if empty.
	ProjectID string `json:"project-id,omitzero" kind:"id" legacy:"true"`
	// Zone of the cluster. Machines in other zones are not matched to Nodes by name.
	Zone string `json:"zone,omitzero" kind:"name" legacy:"true" fallback:"any"`
	// Region of all Nodes, as a label.
	Region string `json:"region,omitzero" legacy:"true" fallback:"the name of their zone"`
	// Trust any certificate. An attacker on the network can then change responses.
	SSLNoVerify bool `json:"ssl-no-verify,omitzero" fallback:"false" legacy:"true"`
	// File with trusted certificate authorities, instead of those of the system.
	CAFile string `json:"caFile,omitzero" alias:"ca-file" kind:"file"`
	// ID of the cluster, which marks its objects. It must be unique and must not change.
	ClusterID string `json:"cluster-id,omitzero" env:"CLUSTER_ID" fallback:"variable 'CLUSTER_ID', otherwise the UID of namespace kube-system"`
	// Maximum age of the cached list of machines.
	MaxAge metav1.Duration `json:"max-age,omitzero" default:"30s"`
	// Timeout of a request, including its response.
	RequestTimeout metav1.Duration `json:"request-timeout,omitzero" default:"1m"`
	// Timeout of a CloudStack job.
	JobTimeout metav1.Duration `json:"job-timeout,omitzero" default:"3m"`
}

// LoadBalancer configures Services of type LoadBalancer.
type LoadBalancer struct {
	// Create load balancers for Services. If false, the controller manages only Nodes. Services with load balancers
	// keep them and cannot be deleted until it is true again.
	Enabled *bool `json:"enabled,omitzero" fallback:"true"`
	// Default network of load balancers.
	Network string `json:"network,omitzero" kind:"name or id" fallback:"that of existing load balancers of the cluster, otherwise the common network of all worker nodes"`
	// Additional networks, which Services select with annotation `network-id`.
	Networks []string `json:"networks,omitzero" kind:"list of names or ids" commas:"true"`
	// Load balancing algorithm: `roundrobin`, `leastconn` or `source`.
	Algorithm string `json:"algorithm,omitzero" enum:"roundrobin,leastconn,source" fallback:"roundrobin"`
	// Include control plane nodes as members of load balancers.
	IncludeControlPlane bool `json:"include-control-plane,omitzero" fallback:"false"`
	// The `spec.loadBalancerClass` of the Services that get a load balancer, in addition to Services without a class.
	Class string `json:"class,omitzero"`
	// Ignore Services without a class.
	ClassOnly bool `json:"class-only,omitzero" fallback:"false"`
	// Interval of the drift check of load balancers.
	DriftInterval metav1.Duration `json:"drift-interval,omitzero" default:"1m"`
}

// Disabled reports whether Services are ignored.
func (b LoadBalancer) Disabled() bool { return b.Enabled != nil && !*b.Enabled }
