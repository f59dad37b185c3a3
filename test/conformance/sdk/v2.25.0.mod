module sdk

go 1.26.0

require github.com/vmware/go-vcloud-director/v2 v2.25.0
