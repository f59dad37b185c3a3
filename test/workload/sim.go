package workload

// GuestVM, GuestNIC and GuestReport are what the simulator and its boot hook exchange.
type (
	// GuestVM is a VM that is powered on.
	GuestVM struct {
		ID, Name, OS      string
		ExtraConfig       map[string]string
		NICs              []GuestNIC
		TemplateName      string
		KubernetesVersion string
	}
	// GuestNIC is a network card as VCD knows it.
	GuestNIC struct {
		MAC, NetworkName, Mode, Address string
		Prefix                          int
		Gateway                         string
		DNS                             []string
	}
	// GuestReport is what the guest shows to the outside.
	GuestReport struct {
		Addresses   map[string]string
		ExtraConfig map[string]string
		Hostname    string
	}
)
