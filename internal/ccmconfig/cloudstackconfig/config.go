// SPDX-License-Identifier: Apache-2.0

// Package cloudstackconfig is the schema of the cloud controller manager's configuration for Apache CloudStack: every
// key of the original's cloud-config, and more. The comments of the fields are the text of
// docs/reference/cloudstack-config.md; the tag "legacy" marks the original's keys.
package cloudstackconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// Config is the whole file.
type Config struct {
	Global       Global       `json:"global"`
	LoadBalancer LoadBalancer `json:"loadbalancer,omitzero"`
}

// Global is where the cluster is, and how CloudStack is called.
type Global struct {
	// Address of CloudStack's API. Required.
	APIURL string `json:"api-url" kind:"URL" legacy:"true" required:"write an address such as https://cloud.example.com/client/api"`
	// API key of the user. Required.
	APIKey string `json:"api-key" legacy:"true" required:"write the API key of the user"`
	// Secret key of the user. Required.
	SecretKey ccmconfig.Secret `json:"secret-key" legacy:"true" required:"write the secret key of the user"`
	// Project of the cluster; without, the account of the user.
	ProjectID string `json:"project-id,omitzero" kind:"id" legacy:"true"`
	// Zone of the cluster: machines in other zones are not taken for a Node because of their name.
	Zone string `json:"zone,omitzero" kind:"name" legacy:"true" fallback:"any"`
	// Region of all Nodes, as a label.
	Region string `json:"region,omitzero" legacy:"true" fallback:"the name of their zone"`
	// Trust any certificate. An attacker on the network can then change the answers.
	SSLNoVerify bool `json:"ssl-no-verify,omitzero" fallback:"false" legacy:"true"`
	// File with certificates to trust instead of the system's.
	CAFile string `json:"caFile,omitzero" alias:"ca-file" kind:"file"`
	// Id of the cluster, which marks what is its own. It must be unique, and stay.
	ClusterID string `json:"cluster-id,omitzero" env:"CLUSTER_ID" fallback:"variable 'CLUSTER_ID', else the UID of namespace kube-system"`
	// Maximum age of the list of machines that is worked with.
	MaxAge metav1.Duration `json:"max-age,omitzero" default:"30s"`
	// For one call, with its answer.
	RequestTimeout metav1.Duration `json:"request-timeout,omitzero" default:"1m"`
	// How long a job of CloudStack may take.
	JobTimeout metav1.Duration `json:"job-timeout,omitzero" default:"3m"`
}

// LoadBalancer is how Services of type LoadBalancer are published.
type LoadBalancer struct {
	// Make load balancers for Services. If false, the controller manages Nodes only; Services that have load balancers
	// keep them, and cannot be deleted, until it is true again.
	Enabled *bool `json:"enabled,omitzero" fallback:"true"`
	// Network of load balancers whose Service names none.
	Network string `json:"network,omitzero" kind:"name or id" fallback:"where those of the cluster stand, else that of all worker nodes"`
	// Further networks, which Services choose by annotation `network-id`.
	Networks []string `json:"networks,omitzero" kind:"list of names or ids" commas:"true"`
	// How nodes are chosen: `roundrobin`, `leastconn` or `source`.
	Algorithm string `json:"algorithm,omitzero" enum:"roundrobin,leastconn,source" fallback:"roundrobin"`
	// Send traffic of Services to control plane nodes, too.
	IncludeControlPlane bool `json:"include-control-plane,omitzero" fallback:"false"`
	// `spec.loadBalancerClass` that is served, besides Services that have none.
	Class string `json:"class,omitzero"`
	// Ignore Services without a class.
	ClassOnly bool `json:"class-only,omitzero" fallback:"false"`
	// How often load balancers are checked for drift.
	DriftInterval metav1.Duration `json:"drift-interval,omitzero" default:"1m"`
}

// Disabled reports whether Services are left alone.
func (b LoadBalancer) Disabled() bool { return b.Enabled != nil && !*b.Enabled }
