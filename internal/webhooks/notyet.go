package webhooks

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// feature is a part of the API that this release does not implement yet. Implementing it means to delete its row below.
type feature[S any] struct {
	// path of the field that asks for the feature, below the spec.
	path []string
	// asked reports whether a spec asks for it.
	asked func(spec *S) bool
	// what is not implemented yet, and what to do instead.
	what, instead string
}

var clusterFeatures = []feature[infrav1.VCDClusterSpec]{
	{
		path:  []string{"endpoint", "type"},
		asked: func(s *infrav1.VCDClusterSpec) bool { return s.Endpoint.Type == infrav1.EndpointEdgeGateway },
		what:  "an endpoint of type EdgeGateway", instead: "use KubeVIP or External",
	},
	{
		path: []string{"endpoint", "kubeVIP", "dnsName"},
		asked: func(s *infrav1.VCDClusterSpec) bool {
			return s.Endpoint.KubeVIP != nil && s.Endpoint.KubeVIP.DNSName != ""
		},
		what: "a name updated by dynamic DNS", instead: "use kubeVIP.address or kubeVIP.poolRef",
	},
	{
		path:  []string{"failureDomainSelector"},
		asked: func(s *infrav1.VCDClusterSpec) bool { return s.FailureDomainSelector != nil },
		what:  "choosing deployment zones", instead: "use ovdc and ovdcNetwork",
	},
	{
		path:  []string{"proxy"},
		asked: func(s *infrav1.VCDClusterSpec) bool { return !isZero(s.Proxy) },
		what:  "a proxy of the nodes", instead: "write it with files and preKubeadmCommands of the bootstrap configuration",
	},
	{
		path: []string{"rde"},
		asked: func(s *infrav1.VCDClusterSpec) bool {
			return !isZero(s.RDE) && s.RDE != infrav1.RDESpec{Mode: infrav1.RDENone}
		},
		what: "the runtime defined entity", instead: "leave it out: clusters work without",
	},
}

var machineFeatures = []feature[infrav1.VCDMachineSpec]{
	{
		path:  []string{"catalog"},
		asked: func(s *infrav1.VCDMachineSpec) bool { return s.Catalog == "" },
		what:  "taking the catalog from a deployment zone", instead: "name the catalog of the template here",
	},
	{
		path:  []string{"bootstrap", "transport"},
		asked: func(s *infrav1.VCDMachineSpec) bool { return s.Bootstrap.Transport == infrav1.TransportOVFProperties },
		what:  "transport OVFProperties", instead: "use GuestInfo",
	},
	{
		path:  []string{"bootstrap", "templateMode"},
		asked: func(s *infrav1.VCDMachineSpec) bool { return s.Bootstrap.TemplateMode == infrav1.TemplateLegacy },
		what:  "template mode Legacy", instead: "use an image whose cloud-init reads guestinfo (DataSourceVMware)",
	},
	{
		path:  []string{"metadata"},
		asked: func(s *infrav1.VCDMachineSpec) bool { return len(s.Metadata) > 0 },
		what:  "metadata of VMs", instead: "leave it out",
	},
}

var networkFeatures = []feature[infrav1.NetworkSpec]{
	{
		path:  []string{"addressSource"},
		asked: func(n *infrav1.NetworkSpec) bool { return n.AddressSource == infrav1.AddressManual },
		what:  "address source Manual", instead: "use Pool or DHCP",
	},
	{
		path:  []string{"addressSource"},
		asked: func(n *infrav1.NetworkSpec) bool { return n.AddressSource == infrav1.AddressIPAM },
		what:  "address source IPAM", instead: "use Pool or DHCP",
	},
}

var failureDomainFeatures = []feature[infrav1.VCDFailureDomainSpec]{
	{
		asked: func(*infrav1.VCDFailureDomainSpec) bool { return true },
		what:  "VCDFailureDomain", instead: "use ovdc and ovdcNetwork of the VCDCluster",
	},
}

var deploymentZoneFeatures = []feature[infrav1.VCDDeploymentZoneSpec]{
	{
		asked: func(*infrav1.VCDDeploymentZoneSpec) bool { return true },
		what:  "VCDDeploymentZone", instead: "use ovdc and ovdcNetwork of the VCDCluster",
	},
}

// notYet returns an error for each feature that the spec at path asks for.
func notYet[S any](features []feature[S], spec *S, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range features {
		if !f.asked(spec) {
			continue
		}
		at := path
		for _, name := range f.path {
			at = at.Child(name)
		}
		errs = append(errs, field.Forbidden(at, f.what+" is not implemented yet: "+f.instead))
	}
	return errs
}

func isZero[T any](value T) bool {
	var zero T
	return equality.Semantic.DeepEqual(value, zero)
}
